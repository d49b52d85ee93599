#include "src/engine/simulated_engine.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <string>

#include "src/plan/channel_index.h"
#include "src/plan/cost.h"

namespace seto {
namespace {

struct Task {
  std::uint32_t step = 0;
  std::uint64_t slice = 0;
};

// Which step of which slice a rank's worker takes next.
class Agenda {
 public:
  Agenda(const Program& program, std::uint64_t slices, StepOrder order)
      : program_(program), slices_(slices), order_(order), by_stage_(program.steps.size()), lanes_(program.lanes.size()) {
    std::iota(by_stage_.begin(), by_stage_.end(), 0U);
    std::sort(by_stage_.begin(), by_stage_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Step& left = program.steps[a];
      const Step& right = program.steps[b];
      if (left.stage != right.stage) return left.stage < right.stage;
      return left.order != right.order ? left.order < right.order : a < b;
    });
    remaining_ = slices * program.steps.size();
    settle();
  }

  [[nodiscard]] bool done() const { return remaining_ == 0; }

  // The next task for which ready(task) holds. In skewed order only one task is ever looked at.
  template <class Ready>
  std::optional<Task> next(Ready ready) const {
    if (order_ == StepOrder::skewed) {
      const Task task = skewed();
      return ready(task) ? std::optional(task) : std::nullopt;
    }
    for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
      const std::size_t lane = (last_lane_ + 1 + turn) % lanes_.size();
      if (lanes_[lane] == slices_ * program_.lanes[lane].step_count) continue;
      const Task task = head_of(lane);
      if (ready(task)) return task;
    }
    return std::nullopt;
  }

  // Any task that is next in its order, for reports.
  [[nodiscard]] Task waiting() const {
    Task task;
    next([&](const Task& each) {
      task = each;
      return true;
    });
    return task;
  }

  void took(const Task& task) {
    --remaining_;
    if (order_ == StepOrder::skewed) {
      ++position_;
      settle();
    } else {
      last_lane_ = lane_of(program_, task.step);
      ++lanes_[last_lane_];
    }
  }

 private:
  [[nodiscard]] Task skewed() const { return {by_stage_[position_], round_ - program_.steps[by_stage_[position_]].stage}; }

  [[nodiscard]] Task head_of(std::size_t lane) const {
    const std::uint32_t length = program_.lanes[lane].step_count;
    return {program_.lanes[lane].first_step + static_cast<std::uint32_t>(lanes_[lane] % length), lanes_[lane] / length};
  }

  // Skewed order: goes on to a (round, position) whose slice exists.
  void settle() {
    while (!done()) {
      if (position_ == by_stage_.size()) {
        position_ = 0;
        ++round_;
      }
      const std::uint64_t stage = program_.steps[by_stage_[position_]].stage;
      if (stage <= round_ && round_ - stage < slices_) return;
      ++position_;
    }
  }

  const Program& program_;
  std::uint64_t slices_;
  StepOrder order_;
  std::vector<std::uint32_t> by_stage_;
  std::vector<std::uint64_t> lanes_;  // readiness: steps taken in each
  std::size_t last_lane_ = 0;
  std::uint64_t round_ = 0;
  std::size_t position_ = 0;
  std::uint64_t remaining_ = 0;
};

struct Event {
  enum class Kind : std::uint8_t { finished, arrived, slot_free };
  double at_ns = 0;
  std::uint64_t number = 0;  // equal times: first come, first served
  Kind kind = Kind::finished;
  Rank rank = 0;  // whom it concerns
  std::uint32_t channel = 0;
  std::size_t receiver = 0;

  friend bool operator>(const Event& a, const Event& b) { return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.number > b.number; }
};

struct Worker {
  Agenda agenda;
  std::vector<std::uint64_t> slices_done;  // by step
  bool busy = false;
  bool queued = false;  // for a core
  Task task;
  double begin_ns = 0;
  double finish_ns = 0;
};

struct Transit {  // of one channel to one of its receivers, in messages
  SimulatedLink link;
  std::uint64_t arrived = 0;
  std::uint64_t slots_freed = 0;
};

struct Node {
  std::uint32_t free_cores = 1;
  std::deque<Rank> queue;
};

class Simulation {
 public:
  Simulation(const SimulatedRun& run, ChannelIndex index) : run_(run), index_(std::move(index)) {
    slices_ = run.layouts.front().slices(run.slice_length);
    for (const Program& program : run.plan.programs)
      workers_.push_back(
          {Agenda(program, slices_, run.order), std::vector<std::uint64_t>(program.steps.size(), 0), false, false, {}, 0, 0});
    for (const JoinedChannel& channel : index_.channels) {
      transits_.emplace_back();
      outcome_.channels.push_back({channel.sender.rank, {}, 0});
      for (const JoinedChannel::End& end : channel.receivers) {
        transits_.back().push_back({run.machine.link(channel.sender.rank, end.rank), 0, 0});
        outcome_.channels.back().receivers.push_back(end.rank);
      }
    }
    for (std::size_t rank = 0; rank < workers_.size(); ++rank)
      nodes_.try_emplace(node_of(static_cast<Rank>(rank)),
                         Node{run.machine.node_of.empty() ? 1 : run.machine.cores_per_node, {}});
  }

  Result<SimulatedOutcome> finish() && {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) try_start(static_cast<Rank>(rank));
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ns_ = event.at_ns;
      Transit* transit = event.kind == Event::Kind::finished ? nullptr : &transits_[event.channel][event.receiver];
      if (event.kind == Event::Kind::arrived) ++transit->arrived;
      if (event.kind == Event::Kind::slot_free) ++transit->slots_freed;
      if (event.kind == Event::Kind::finished) end_task(event.rank);
      try_start(event.rank);
    }
    for (std::size_t rank = 0; rank < workers_.size(); ++rank)
      if (!workers_[rank].agenda.done()) return stuck(static_cast<Rank>(rank));
    for (const Worker& worker : workers_) outcome_.finish_ns.push_back(worker.finish_ns);
    return std::move(outcome_);
  }

 private:
  const Program& program(Rank rank) const { return run_.plan.programs[static_cast<std::size_t>(rank)]; }
  Worker& worker(Rank rank) { return workers_[static_cast<std::size_t>(rank)]; }
  std::uint32_t node_of(Rank rank) const {
    return run_.machine.node_of.empty() ? static_cast<std::uint32_t>(rank) : run_.machine.node_of[static_cast<std::size_t>(rank)];
  }
  std::uint32_t joined(Rank rank, const Operand& operand) const {
    return index_.of_program[static_cast<std::size_t>(rank)][operand.index];
  }
  std::size_t receiver_index(std::uint32_t channel, Rank rank) const {
    const auto& receivers = index_.channels[channel].receivers;
    const auto here =
        std::find_if(receivers.begin(), receivers.end(), [&](const JoinedChannel::End& end) { return end.rank == rank; });
    return static_cast<std::size_t>(here - receivers.begin());
  }

  void push(Event event) {
    event.number = pushed_++;
    events_.push(event);
  }

  // What the task waits for, or nothing.
  std::optional<std::string> obstacle(Rank rank, const Task& task) {
    const Program& mine = program(rank);
    const Step& step = mine.steps[task.step];
    for (const Dependency& dependency : mine.dependencies_of(step)) {
      const std::uint32_t first = mine.lanes[dependency.lane].first_step;
      for (std::uint32_t i = first; i < first + dependency.steps; ++i)
        if (worker(rank).slices_done[i] <= task.slice)
          return std::to_string(dependency.steps) + " steps of lane " + std::to_string(dependency.lane);
    }
    for (const Operand& source : mine.sources(step)) {
      if (source.space != Space::channel) continue;
      const std::uint32_t channel = joined(rank, source);
      if (transits_[channel][receiver_index(channel, rank)].arrived <= task.slice)
        return "a message of rank " + std::to_string(index_.channels[channel].sender.rank);
    }
    for (const Operand& target : mine.targets(step)) {
      if (target.space != Space::channel) continue;
      const std::uint32_t channel = joined(rank, target);
      for (std::size_t i = 0; i < transits_[channel].size(); ++i)
        if (task.slice >= transits_[channel][i].slots_freed + run_.depth)
          return "rank " + std::to_string(index_.channels[channel].receivers[i].rank) + " to read a message";
    }
    return std::nullopt;
  }

  void try_start(Rank rank) {
    Worker& mine = worker(rank);
    if (mine.busy || mine.queued || mine.agenda.done()) return;
    const std::optional<Task> task = mine.agenda.next([&](const Task& each) { return !obstacle(rank, each).has_value(); });
    if (!task) return;
    Node& node = nodes_.at(node_of(rank));
    if (node.free_cores == 0) {
      mine.queued = true;
      return node.queue.push_back(rank);
    }
    --node.free_cores;
    mine.busy = true;
    mine.task = *task;
    mine.begin_ns = now_ns_;
    mine.agenda.took(*task);
    push({now_ns_ + duration(rank, *task), 0, Event::Kind::finished, rank, 0, 0});
  }

  std::uint64_t bytes_a_place(Rank rank, const Task& task) const {
    const Step& step = program(rank).steps[task.step];
    std::uint64_t elements = 0;
    for (std::uint32_t i = 0; i < step.count; ++i)
      elements += run_.layouts[static_cast<std::size_t>(rank)].slice(step.chunk + i, task.slice, run_.slice_length).length;
    return elements * run_.element_size;
  }

  double duration(Rank rank, const Task& task) const {
    const Step& step = program(rank).steps[task.step];
    const StepCost cost = cost_of(program(rank), step);
    const double bytes = static_cast<double>(bytes_a_place(rank, task)) / step.count;  // of one chunk, on average
    return run_.machine.step_ns +
           bytes * (cost.folded * run_.machine.reduce_ns_per_byte + (cost.written + cost.sent) * run_.machine.copy_ns_per_byte);
  }

  void end_task(Rank rank) {
    Worker& mine = worker(rank);
    const Task task = mine.task;
    const Step& step = program(rank).steps[task.step];
    mine.busy = false;
    mine.finish_ns = now_ns_;
    ++mine.slices_done[task.step];
    if (run_.trace != nullptr) run_.trace->push_back({rank, task.step, task.slice, mine.begin_ns, now_ns_});
    for (const Operand& target : program(rank).targets(step))
      if (target.space == Space::channel) post(joined(rank, target), bytes_a_place(rank, task));
    for (const Operand& source : program(rank).sources(step))
      if (source.space == Space::channel) free_slot(joined(rank, source), rank);
    Node& node = nodes_.at(node_of(rank));
    ++node.free_cores;
    if (node.queue.empty()) return;
    const Rank next = node.queue.front();
    node.queue.pop_front();
    worker(next).queued = false;
    try_start(next);
  }

  void post(std::uint32_t channel, std::uint64_t bytes) {
    outcome_.channels[channel].bytes += bytes;
    for (std::size_t i = 0; i < transits_[channel].size(); ++i) {
      const SimulatedLink& link = transits_[channel][i].link;
      double& free_at = wire_free_ns_[link.wire];
      free_at = std::max(free_at, now_ns_) + static_cast<double>(bytes) * link.ns_per_byte;
      push({free_at + link.latency_ns, 0, Event::Kind::arrived, index_.channels[channel].receivers[i].rank, channel, i});
    }
  }

  void free_slot(std::uint32_t channel, Rank rank) {
    const std::size_t receiver = receiver_index(channel, rank);
    const double at = now_ns_ + transits_[channel][receiver].link.latency_ns;
    push({at, 0, Event::Kind::slot_free, index_.channels[channel].sender.rank, channel, receiver});
  }

  Status stuck(Rank rank) {
    const Task task = worker(rank).agenda.waiting();
    const Step& step = program(rank).steps[task.step];
    const std::uint32_t lane = lane_of(program(rank), task.step);
    const std::string_view verb = name_of(step.verb);
    return failure(Code::internal,
                   "rank %d is stuck at lane %u, step %u (%.*s of chunks %u+%u), slice %ju with depth %u: it waits for %s", rank,
                   lane, task.step - program(rank).lanes[lane].first_step, static_cast<int>(verb.size()), verb.data(), step.chunk,
                   step.count, std::uintmax_t{task.slice}, run_.depth, obstacle(rank, task).value_or("nothing").c_str());
  }

  const SimulatedRun& run_;
  ChannelIndex index_;
  std::uint64_t slices_ = 1;
  double now_ns_ = 0;
  std::uint64_t pushed_ = 0;
  std::vector<Worker> workers_;
  std::vector<std::vector<Transit>> transits_;  // by joined channel and receiver
  std::map<std::uint32_t, Node> nodes_;
  std::map<std::uint32_t, double> wire_free_ns_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  SimulatedOutcome outcome_;
};

}  // namespace

std::function<SimulatedLink(Rank, Rank)> uniform_links(int ranks, double latency_ns, double ns_per_byte) {
  return [=](Rank from, Rank to) {
    return SimulatedLink{latency_ns, ns_per_byte, static_cast<std::uint32_t>(from * ranks + to)};
  };
}

double SimulatedOutcome::longest_ns() const { return *std::max_element(finish_ns.begin(), finish_ns.end()); }

Result<SimulatedOutcome> simulate(const SimulatedRun& run) {
  SETO_TRY(check_structure(run.plan));
  const std::size_t ranks = run.plan.programs.size();
  const bool nodes_known = run.machine.node_of.empty() || run.machine.node_of.size() == ranks;
  if (run.layouts.size() != ranks || !run.machine.link || !nodes_known || run.machine.cores_per_node == 0)
    return failure(Code::invalid_argument, "a simulation needs links, a layout for each of %zu ranks, and a core on each node",
                   ranks);
  if (run.slice_length == 0 || run.depth == 0)
    return failure(Code::invalid_argument, "a simulation needs a slice length and a depth");
  for (const Program& program : run.plan.programs)
    if (run.order == StepOrder::skewed && program.lanes.size() != program.steps.size())
      return failure(Code::invalid_argument, "rank %d: the skewed order is for lowered programs, whose lanes hold one step",
                     program.rank);
  SETO_ASSIGN(ChannelIndex index, join_channels(run.plan));
  return Simulation(run, std::move(index)).finish();
}

}  // namespace seto

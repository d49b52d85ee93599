#include "src/engine/simulation/simulated_engine.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "src/engine/simulation/agenda.h"
#include "src/engine/simulation/event_queue.h"
#include "src/engine/simulation/virtual_network.h"
#include "src/plan/channel_index.h"
#include "src/plan/chunk_map.h"
#include "src/plan/cost.h"
#include "src/plan/step_order.h"

namespace seto {
namespace {

// The lanes of a program that wait for steps of a lane, by lane.
class Dependents final {
 public:
  explicit Dependents(const Program& program) : first_(program.lanes.size() + 1, 0) {
    const auto each = [&](auto action) {
      for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
        for (const Step& step : program.steps_of(program.lanes[lane]))
          for (const Dependency& dependency : program.dependencies_of(step)) action(dependency.lane, lane);
    };
    each([&](std::uint32_t on, std::uint32_t) { ++first_[on + 1]; });
    for (std::size_t lane = 1; lane < first_.size(); ++lane) first_[lane] += first_[lane - 1];
    lanes_.resize(first_.back());
    std::vector<std::uint32_t> next = first_;
    each([&](std::uint32_t on, std::uint32_t lane) { lanes_[next[on]++] = lane; });
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t lane) const {
    return std::span(lanes_).subspan(first_[lane], first_[lane + 1] - first_[lane]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> lanes_;
};

struct Worker {
  Agenda agenda;
  Dependents dependents;
  std::vector<std::uint64_t> slices_done;          // by step
  std::vector<std::uint32_t> index_as_a_receiver;  // by channel of the program, where this rank receives
  bool busy = false;
  bool queued = false;  // waits for a core
  VirtualTask task;
  double begin_ns = 0;
  double finish_ns = 0;
};

// How far the messages of one channel to one of its receivers are.
struct Transit {
  std::uint32_t way = 0;
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;
  std::uint64_t slots_freed = 0;
  double receive_ns = 0;  // of the receiver's worker
};

struct Node {
  std::uint32_t free_cores = 1;
  std::deque<Rank> queue;
};

class Simulation {
 public:
  // `orders`: by rank; empty: the readiness order.
  Simulation(const SimulatedRun& run, ChannelIndex index, std::vector<SkewedOrder> orders)
      : run_(run), index_(std::move(index)), network_(run.machine, events_) {
    slices_ = run.layouts.front().slices(run.slice_length);
    for (std::size_t rank = 0; rank < run.plan.programs.size(); ++rank) {
      const Program& program = run.plan.programs[rank];
      std::optional<SkewedOrder> order = orders.empty() ? std::nullopt : std::optional(std::move(orders[rank]));
      Worker made{Agenda(program, slices_, std::move(order)), Dependents(program), {}, {}, false, false, {}, 0, 0};
      made.slices_done.assign(program.steps.size(), 0);
      made.index_as_a_receiver.assign(program.channels.size(), 0);
      workers_.push_back(std::move(made));
    }
    for (std::uint32_t channel = 0; channel < index_.channels.size(); ++channel) add_transits(index_.channels[channel]);
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      std::vector<std::uint32_t>& mine = workers_[rank].index_as_a_receiver;
      for (std::size_t c = 0; c < mine.size(); ++c) mine[c] = receiver_index(index_.of_program[rank][c], static_cast<Rank>(rank));
      nodes_.try_emplace(node_of(static_cast<Rank>(rank)),
                         Node{run.machine.node_of.empty() ? 1 : run.machine.cores_per_node, {}});
    }
    if (slices_ == 1) sum_chunks();
  }

  Result<SimulatedOutcome> finish() && {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) try_start(static_cast<Rank>(rank));
    while (!events_.empty() || network_.next_end_ns() < SharedLinks::kNever) {
      if (events_.empty() || network_.next_end_ns() <= events_.next_ns()) {
        now_ns_ = network_.next_end_ns();
        network_.end_flows();
        continue;
      }
      const VirtualEvent event = events_.pop();
      now_ns_ = event.at_ns;
      take(event);
    }
    for (std::size_t rank = 0; rank < workers_.size(); ++rank)
      if (!workers_[rank].agenda.done()) return stuck(static_cast<Rank>(rank));
    for (const Worker& worker : workers_) outcome_.finish_ns.push_back(worker.finish_ns);
    outcome_.bytes_by_wire = network_.bytes_by_wire();
    outcome_.bytes_by_shared_link = network_.bytes_by_shared_link();
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
  Transit& transit(std::uint32_t channel, std::uint32_t receiver) { return transits_[first_transit_[channel] + receiver]; }
  Transit& transit_to(Rank rank, const Operand& source) {
    return transit(joined(rank, source), worker(rank).index_as_a_receiver[source.index]);
  }

  void add_transits(const JoinedChannel& channel) {
    first_transit_.push_back(transits_.size());
    outcome_.channels.push_back({channel.sender.rank, {}, 0});
    double& send_ns = send_ns_.emplace_back(0);
    bool is_written = false;
    for (const JoinedChannel::End& end : channel.receivers) {
      const std::uint32_t way = network_.way(channel.sender.rank, end.rank);
      const SimulatedLink& link = network_.link(way);
      transits_.push_back({way, 0, 0, 0, link.message_ns});
      if (!link.written_once || !is_written) send_ns += link.message_ns;
      is_written = is_written || link.written_once;
      outcome_.channels.back().receivers.push_back(end.rank);
    }
  }

  // Receivers are in the order of ranks. 0 for the sender.
  std::uint32_t receiver_index(std::uint32_t channel, Rank rank) const {
    const auto& receivers = index_.channels[channel].receivers;
    const auto here = std::lower_bound(receivers.begin(), receivers.end(), rank,
                                       [](const JoinedChannel::End& end, Rank wanted) { return end.rank < wanted; });
    return here == receivers.end() || here->rank != rank ? 0 : static_cast<std::uint32_t>(here - receivers.begin());
  }

  void take(const VirtualEvent& event) {
    switch (event.kind) {
      case VirtualEvent::Kind::finished:
        return end_task(event.rank);
      case VirtualEvent::Kind::arrived: {
        Transit& arrived = transit(event.channel, event.receiver);
        const std::uint32_t step = index_.channels[event.channel].receivers[event.receiver].step;
        note_arrival(event, step, arrived.arrived);
        ++arrived.arrived;
        return wake(event.rank, step);
      }
      case VirtualEvent::Kind::slot_free:
        ++transit(event.channel, event.receiver).slots_freed;
        return wake(event.rank, index_.channels[event.channel].sender.step);
      default:
        return network_.take(event);
    }
  }

  void wake(Rank rank, std::uint32_t step) {
    worker(rank).agenda.wake(lane_of(program(rank), step));
    try_start(rank);
  }

  [[nodiscard]] static bool is_done(const Worker& mine, const Program& program, const Dependency& dependency,
                                    std::uint64_t slice) {
    const std::uint32_t first = program.lanes[dependency.lane].first_step;
    for (std::uint32_t i = first; i < first + dependency.steps; ++i)
      if (mine.slices_done[i] <= slice) return false;
    return true;
  }

  // Calls report(text) for the first reason why the task cannot run; false: it can run.
  template <class Report>
  bool is_blocked(Rank rank, const VirtualTask& task, Report report) {
    const Program& mine = program(rank);
    const Step& step = mine.steps[task.step];
    for (const Dependency& dependency : mine.dependencies_of(step))
      if (!is_done(worker(rank), mine, dependency, task.slice)) {
        report([&] { return std::to_string(dependency.steps) + " steps of lane " + std::to_string(dependency.lane); });
        return true;
      }
    for (const Operand& source : mine.sources(step))
      if (source.space == Space::channel && transit_to(rank, source).arrived <= task.slice) {
        report([&] { return "a message of rank " + std::to_string(index_.channels[joined(rank, source)].sender.rank); });
        return true;
      }
    for (const Operand& target : mine.targets(step)) {
      if (target.space != Space::channel) continue;
      const auto& receivers = index_.channels[joined(rank, target)].receivers;
      for (std::uint32_t i = 0; i < receivers.size(); ++i)
        if (task.slice >= transit(joined(rank, target), i).slots_freed + run_.depth) {
          report([&] { return "rank " + std::to_string(receivers[i].rank) + " to read a message"; });
          return true;
        }
    }
    return false;
  }

  void try_start(Rank rank) {
    Worker& mine = worker(rank);
    if (mine.busy || mine.queued || mine.agenda.done()) return;
    const std::optional<VirtualTask> task =
        mine.agenda.next([&](const VirtualTask& each) { return !is_blocked(rank, each, [](const auto&) {}); });
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
    VirtualEvent event;
    event.at_ns = now_ns_ + duration(rank, *task);
    event.rank = rank;
    events_.push(event);
  }

  // Chunks have the same lengths on every rank.
  void sum_chunks() {
    elements_before_.push_back(0);
    for (std::uint32_t chunk = 0; chunk < logical_chunks(run_.plan.shape); ++chunk)
      elements_before_.push_back(elements_before_.back() + run_.layouts.front().length(chunk));
  }

  double bytes_a_place(Rank rank, const VirtualTask& task) const {
    const Step& step = program(rank).steps[task.step];
    std::uint64_t elements = 0;
    if (!elements_before_.empty()) {
      elements = elements_before_[step.chunk + step.count] - elements_before_[step.chunk];
    } else {
      for (std::uint32_t i = 0; i < step.count; ++i)
        elements += run_.layouts[static_cast<std::size_t>(rank)].slice(step.chunk + i, task.slice, run_.slice_length).length;
    }
    return static_cast<double>(elements * run_.element_size);
  }

  // The worker's time for the messages that a step sends and receives, besides their bytes.
  double message_ns(Rank rank, const Step& step) {
    double ns = 0;
    for (const Operand& target : program(rank).targets(step))
      if (target.space == Space::channel) ns += send_ns_[joined(rank, target)];
    for (const Operand& source : program(rank).sources(step))
      if (source.space == Space::channel) ns += transit_to(rank, source).receive_ns;
    return ns;
  }

  double duration(Rank rank, const VirtualTask& task) {
    const Step& step = program(rank).steps[task.step];
    const StepCost cost = cost_of(program(rank), step);
    const double bytes = bytes_a_place(rank, task) / step.count;  // of one chunk, on average
    const SimulatedMachine& machine = run_.machine;
    return machine.step_ns + message_ns(rank, step) +
           bytes * (cost.folded * machine.reduce_ns_per_byte + (cost.written + cost.sent) * machine.copy_ns_per_byte +
                    (cost.read + cost.received + cost.written + cost.sent) * machine.pass_ns_per_byte +
                    cost.coded * machine.code_ns_per_byte);
  }

  void end_task(Rank rank) {
    Worker& mine = worker(rank);
    const VirtualTask task = mine.task;
    const Step& step = program(rank).steps[task.step];
    const std::uint32_t lane = lane_of(program(rank), task.step);
    mine.busy = false;
    mine.finish_ns = now_ns_;
    ++mine.slices_done[task.step];
    mine.agenda.wake(lane);
    for (const std::uint32_t dependent : mine.dependents.of(lane)) mine.agenda.wake(dependent);
    if (is_shown(rank)) run_.trace->steps.push_back({rank, task.step, task.slice, mine.begin_ns, now_ns_});
    for (const Operand& target : program(rank).targets(step))
      if (target.space == Space::channel) post(rank, target, bytes_a_place(rank, task));
    for (const Operand& source : program(rank).sources(step))
      if (source.space == Space::channel) free_slot(rank, source);
    Node& node = nodes_.at(node_of(rank));
    ++node.free_cores;
    if (!node.queue.empty()) {
      const Rank next = node.queue.front();
      node.queue.pop_front();
      worker(next).queued = false;
      try_start(next);
    }
    try_start(rank);
  }

  // The receivers of a multicast are served from the sender's successor on. Real connections share a port; served in the order
  // of ranks they would all wait for the port of rank 0 first.
  void post(Rank sender, const Operand& target, double bytes) {
    const std::uint32_t channel = joined(sender, target);
    outcome_.channels[channel].bytes += static_cast<std::uint64_t>(bytes);
    const double wire_bytes = bytes * (program(sender).channels[target.index].coded ? run_.coded_share : 1);
    const auto& receivers = index_.channels[channel].receivers;
    const auto after =
        std::find_if(receivers.begin(), receivers.end(), [&](const JoinedChannel::End& end) { return end.rank > sender; });
    const auto first = static_cast<std::size_t>(after - receivers.begin());
    for (std::size_t turn = 0; turn < receivers.size(); ++turn) {
      VirtualEvent arrival;
      arrival.channel = channel;
      arrival.receiver = static_cast<std::uint32_t>((first + turn) % receivers.size());
      arrival.rank = receivers[arrival.receiver].rank;
      Transit& on = transit(channel, arrival.receiver);
      if (is_shown(arrival.rank)) sent_ns_[key_of(arrival, on.sent)] = now_ns_;
      ++on.sent;
      network_.send(on.way, wire_bytes, arrival, now_ns_);
    }
  }

  void free_slot(Rank rank, const Operand& source) {
    VirtualEvent event;
    event.kind = VirtualEvent::Kind::slot_free;
    event.channel = joined(rank, source);
    event.receiver = worker(rank).index_as_a_receiver[source.index];
    event.rank = index_.channels[event.channel].sender.rank;
    event.at_ns = now_ns_ + network_.link(transit(event.channel, event.receiver).way).latency_ns;
    events_.push(event);
  }

  [[nodiscard]] bool is_shown(Rank rank) const {
    return run_.trace != nullptr && (!run_.trace->shows || run_.trace->shows(rank));
  }

  using MessageKey = std::pair<std::uint64_t, std::uint64_t>;  // transit, slice
  MessageKey key_of(const VirtualEvent& event, std::uint64_t slice) const {
    return {first_transit_[event.channel] + event.receiver, slice};
  }
  void note_arrival(const VirtualEvent& event, std::uint32_t step, std::uint64_t slice) {
    if (!is_shown(event.rank)) return;
    const auto sent = sent_ns_.find(key_of(event, slice));
    run_.trace->messages.push_back({index_.channels[event.channel].sender.rank, event.rank, step, slice, sent->second, now_ns_});
    sent_ns_.erase(sent);
  }

  Status stuck(Rank rank) {
    const VirtualTask task = worker(rank).agenda.waiting();
    const Step& step = program(rank).steps[task.step];
    const std::uint32_t lane = lane_of(program(rank), task.step);
    const std::string_view verb = name_of(step.verb);
    std::string reason = "nothing";
    is_blocked(rank, task, [&](const auto& text) { reason = text(); });
    return failure(Code::internal,
                   "rank %d is stuck at lane %u, step %u (%.*s of chunks %u+%u), slice %ju with depth %u: it waits for %s", rank,
                   lane, task.step - program(rank).lanes[lane].first_step, static_cast<int>(verb.size()), verb.data(), step.chunk,
                   step.count, std::uintmax_t{task.slice}, run_.depth, reason.c_str());
  }

  const SimulatedRun& run_;
  ChannelIndex index_;
  EventQueue events_;
  VirtualNetwork network_;
  std::uint64_t slices_ = 1;
  double now_ns_ = 0;
  std::vector<Worker> workers_;
  std::vector<Transit> transits_;               // of one channel after another, by receiver
  std::vector<std::size_t> first_transit_;      // by joined channel
  std::vector<double> send_ns_;                 // of the sender's worker, by joined channel
  std::vector<std::uint64_t> elements_before_;  // by chunk; empty: there are several slices
  std::map<MessageKey, double> sent_ns_;        // of messages that are under way to ranks that are shown
  std::unordered_map<std::uint32_t, Node> nodes_;
  SimulatedOutcome outcome_;
};

}  // namespace

std::function<SimulatedLink(Rank, Rank)> uniform_links(int ranks, double latency_ns, double ns_per_byte) {
  return [=](Rank from, Rank to) {
    SimulatedLink link;
    link.latency_ns = latency_ns;
    link.ns_per_byte = ns_per_byte;
    link.wire = static_cast<std::uint32_t>(from * ranks + to);
    return link;
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
  const auto is_no_rate = [](double rate) { return !(rate > 0); };
  if (std::any_of(run.machine.shared_bytes_per_ns.begin(), run.machine.shared_bytes_per_ns.end(), is_no_rate))
    return failure(Code::invalid_argument, "a simulation needs a rate above 0 for each shared link");
  if (run.slice_length == 0 || run.depth == 0)
    return failure(Code::invalid_argument, "a simulation needs a slice length and a depth");
  std::vector<SkewedOrder> orders;
  for (const Program& program : run.plan.programs) {
    if (run.order != StepOrder::skewed) break;
    SETO_ASSIGN(SkewedOrder order, SkewedOrder::of(program));
    orders.push_back(std::move(order));
  }
  SETO_ASSIGN(ChannelIndex index, join_channels(run.plan));
  return Simulation(run, std::move(index), std::move(orders)).finish();
}

}  // namespace seto

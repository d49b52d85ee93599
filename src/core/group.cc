#include "src/core/group.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "src/core/estimate.h"

namespace seto {
namespace {

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

// Tasks of several contexts, driven by this one thread.
class Crew {
 public:
  void add(const std::shared_ptr<Context>& context, std::unique_ptr<Task> task) {
    if (std::find(contexts_.begin(), contexts_.end(), context) == contexts_.end()) contexts_.push_back(context);
    jobs_.push_back({context.get(), std::move(task)});
  }

  Status run() {
    for (const auto& context : contexts_) context->progress().attend();
    for (const Job& job : jobs_) job.context->progress().join(*job.task);
    if (contexts_.size() == 1)
      for (const Job& job : jobs_) contexts_.front()->progress().wait(*job.task, Deadline::never());
    else
      make_passes();
    for (const auto& context : contexts_) context->progress().depart();
    Status first;
    for (const Job& job : jobs_) keep_first(first, job.task->status());
    return first;
  }

 private:
  struct Job {
    Context* context;
    std::unique_ptr<Task> task;
  };

  // Each context's turn to sleep comes round while none of them moves.
  void relax(std::uint32_t idle) { contexts_[idle % contexts_.size()]->progress().relax(idle); }

  void make_passes() {
    std::size_t first = 0;
    for (std::uint32_t idle = 0;;) {
      while (first < jobs_.size() && jobs_[first].task->ended()) ++first;
      if (first == jobs_.size()) return;
      bool moved = false;
      for (const auto& context : contexts_) moved = context->progress().pass() || moved;
      if (moved)
        idle = 0;
      else
        relax(idle++);
    }
  }

  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<Job> jobs_;
};

}  // namespace

CallGroup& CallGroup::of_thread() {
  thread_local CallGroup group;
  return group;
}

void CallGroup::add(Place place, const Call& call) {
  Entry& entry = entries_.emplace_back();
  entry.place = std::move(place);
  entry.call = call;
  entry.counts.assign(call.counts.begin(), call.counts.end());
  entry.displacements.assign(call.displacements.begin(), call.displacements.end());
  if (call.scalar != nullptr) std::memcpy(entry.scalar, call.scalar, scalar_size(call.type));
}

void CallGroup::add(Place place, Transfer transfer, std::uint32_t deadline_ms) {
  auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.kind == Kind::point_to_point && entry.place.communicator == place.communicator &&
           entry.place.stream == place.stream;
  });
  if (same == entries_.end()) {
    same = entries_.emplace(entries_.end());
    same->place = std::move(place);
    same->kind = Kind::point_to_point;
    same->deadline_ms = deadline_ms;
  }
  // The longest of all, and none is the communicator's.
  same->deadline_ms = same->deadline_ms == 0 || deadline_ms == 0 ? 0 : std::max(same->deadline_ms, deadline_ms);
  same->transfers.push_back(std::move(transfer));
}

void CallGroup::add(Place place, std::vector<Transfer> exchange, std::uint32_t deadline_ms) {
  Entry& entry = entries_.emplace_back();
  entry.place = std::move(place);
  entry.kind = Kind::exchange;
  entry.transfers = std::move(exchange);
  entry.deadline_ms = deadline_ms;
}

void CallGroup::add_failure(const Status& status) { keep_first(failure_, status); }

Status CallGroup::end() {
  if (depth_ == 0) return failure(Code::invalid_usage, "setoGroupEnd: this thread has started no group");
  if (--depth_ > 0) return {};
  std::vector<Entry> entries = std::exchange(entries_, {});
  Status first = std::exchange(failure_, Status());
  if (!entries.empty()) keep_first(first, issue_all(entries));
  return first;
}

void CallGroup::drop() {
  if (depth_ > 0) --depth_;
  if (depth_ > 0) return;
  entries_.clear();
  failure_ = Status();
}

Status CallGroup::run_one(Entry& entry) {
  Communicator& communicator = *entry.place.communicator;
  if (entry.kind == Kind::collective) return communicator.run(entry.call);
  return communicator.run(TransferCall{entry.transfers,
                                       entry.kind == Kind::exchange ? TransferKind::all_to_all_v : TransferKind::point_to_point,
                                       entry.deadline_ms});
}

Result<double> CallGroup::simulate() {
  if (depth_ == 0) return failure(Code::invalid_usage, "setoGroupSimulateEnd: this thread has started no group");
  if (--depth_ > 0) return -1.0;
  std::vector<Entry> entries = std::exchange(entries_, {});
  SETO_TRY(std::exchange(failure_, Status()));
  settle(entries);
  std::map<const Communicator*, double> seconds;
  for (const Entry& entry : entries) {
    if (entry.place.alive) SETO_TRY(entry.place.alive());
    const Communicator& communicator = *entry.place.communicator;
    if (communicator.failed()) return communicator.first_failure();
    SETO_ASSIGN(const double one, entry.kind == Kind::collective ? estimated_seconds(communicator, entry.call)
                                                                 : estimated_seconds(communicator, std::span(entry.transfers)));
    seconds[&communicator] += one;
  }
  double longest = 0;
  for (const auto& [communicator, sum] : seconds) longest = std::max(longest, sum);
  return longest;
}

void CallGroup::settle(std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    entry.call.counts = entry.counts;
    entry.call.displacements = entry.displacements;
    if (entry.call.scalar != nullptr) entry.call.scalar = entry.scalar;
  }
}

Status CallGroup::issue_all(std::vector<Entry>& entries) {
  Status first;
  settle(entries);
  if (entries.size() == 1 && entries.front().place.stream == nullptr) {
    if (entries.front().place.alive) SETO_TRY(entries.front().place.alive());
    return run_one(entries.front());
  }
  Crew crew;
  for (Entry& entry : entries) {
    if (entry.place.alive) {
      if (Status alive = entry.place.alive(); !alive.ok()) {
        keep_first(first, std::move(alive));
        continue;
      }
    }
    Communicator& communicator = *entry.place.communicator;
    if (communicator.failed()) {
      keep_first(first, communicator.first_failure());
      continue;
    }
    const TransferCall transfers{entry.transfers,
                                 entry.kind == Kind::exchange ? TransferKind::all_to_all_v : TransferKind::point_to_point,
                                 entry.deadline_ms};
    if (HostStream* const stream = entry.place.stream.get())
      keep_first(first, entry.kind == Kind::collective ? stream->enqueue(communicator, entry.call)
                                                       : stream->enqueue(communicator, transfers));
    else
      crew.add(communicator.context(),
               entry.kind == Kind::collective ? communicator.issue(entry.call, nullptr) : communicator.issue(transfers, nullptr));
  }
  keep_first(first, crew.run());
  return first;
}

}  // namespace seto

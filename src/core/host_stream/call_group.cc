#include "src/core/host_stream/call_group.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "src/core/connect/multi_context_wait.h"
#include "src/core/communicator/time_estimate.h"

namespace seto {
namespace {

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

// The calls that stand on this stream, of which there are few in a group.
HostStream::Batch& batch_of(std::deque<HostStream::Batch>& batches, HostStream& stream) {
  const auto known =
      std::find_if(batches.begin(), batches.end(), [&](const HostStream::Batch& batch) { return &batch.stream() == &stream; });
  return known == batches.end() ? batches.emplace_back(stream) : *known;
}

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

// What follows an exchange, or a message on another stream, stands behind it: peers match what they hear of each other in the
// order of the calls, and one that has no part in the first message would not put the later ones there. Of messages to oneself
// both ends must be in one program.
CallGroup::Entry* CallGroup::messages_at(const Place& place, bool to_oneself) {
  const auto of_communicator = [&](const Entry& entry) {
    return entry.kind != Kind::collective && entry.place.communicator == place.communicator;
  };
  const auto joins = [&](const Entry& entry) {
    return of_communicator(entry) && entry.kind == Kind::point_to_point && entry.place.stream == place.stream;
  };
  if (to_oneself) {
    const auto first = std::find_if(entries_.begin(), entries_.end(), joins);
    return first == entries_.end() ? nullptr : &*first;
  }
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), of_communicator);
  return last == entries_.rend() || !joins(*last) ? nullptr : &*last;
}

void CallGroup::add(Place place, Transfer transfer, std::uint32_t deadline_ms) {
  Entry* last = messages_at(place, transfer.peer == place.communicator->rank());
  if (last == nullptr) {
    last = &entries_.emplace_back();
    last->place = std::move(place);
    last->kind = Kind::point_to_point;
    last->deadline_ms = deadline_ms;
  }
  // The longest of all, and none is the communicator's.
  last->deadline_ms = last->deadline_ms == 0 || deadline_ms == 0 ? 0 : std::max(last->deadline_ms, deadline_ms);
  last->transfers.push_back(std::move(transfer));
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
  // Operations get their numbers in the order of the calls, wherever these stand.
  std::deque<HostStream::Batch> batches;
  std::vector<std::unique_ptr<Task>> blocking;
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
    if (HostStream* const stream = entry.place.stream.get()) {
      HostStream::Batch& batch = batch_of(batches, *stream);
      keep_first(first,
                 entry.kind == Kind::collective ? batch.add(communicator, entry.call) : batch.add(communicator, transfers));
    } else {
      blocking.push_back(entry.kind == Kind::collective ? communicator.issue(entry.call, nullptr)
                                                        : communicator.issue(transfers, nullptr));
      crew.add(communicator.context(), *blocking.back());
    }
  }
  for (HostStream::Batch& batch : batches) batch.queue();
  crew.run();
  for (const std::unique_ptr<Task>& task : blocking) keep_first(first, task->status());
  return first;
}

}  // namespace seto

#include "src/core/host_stream/call_group.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "src/core/communicator/communicator.h"
#include "src/core/communicator/time_estimate.h"
#include "src/core/connect/multi_context_wait.h"

namespace seto {
namespace {

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

}  // namespace

void CallGroup::add(Target target, const Call& call) {
  Entry& entry = entries_.emplace_back();
  entry.target = std::move(target);
  entry.call = call;
  entry.counts.assign(call.counts.begin(), call.counts.end());
  entry.displacements.assign(call.displacements.begin(), call.displacements.end());
  if (call.scalar != nullptr) std::memcpy(entry.scalar, call.scalar, scalar_size(call.type));
}

// A message that follows an exchange, or a message on another stream, gets a new entry: peers match messages in the order of the
// calls, and a rank that takes no part in the first message would otherwise match the later ones too early. A message to oneself
// needs both ends in one program.
CallGroup::Entry* CallGroup::message_entry(const Target& target, bool to_oneself) {
  const auto known = messages_.find(target.communicator);
  if (known == messages_.end()) return nullptr;
  if (to_oneself) {
    const auto first = known->second.first_of_stream.find(target.stream.get());
    return first == known->second.first_of_stream.end() ? nullptr : &entries_[first->second];
  }
  Entry& last = entries_[known->second.last];
  return last.kind == Kind::point_to_point && last.target.stream == target.stream ? &last : nullptr;
}

CallGroup::Entry& CallGroup::add_message_entry(Target target, Kind kind) {
  MessageEntries& of_communicator = messages_[target.communicator];
  of_communicator.last = entries_.size();
  if (kind == Kind::point_to_point) of_communicator.first_of_stream.try_emplace(target.stream.get(), entries_.size());
  Entry& entry = entries_.emplace_back();
  entry.target = std::move(target);
  entry.kind = kind;
  return entry;
}

std::vector<CallGroup::Entry> CallGroup::take_entries() {
  messages_.clear();
  return std::exchange(entries_, {});
}

void CallGroup::add(Target target, Transfer transfer, std::uint32_t deadline_ms) {
  Entry* last = message_entry(target, transfer.peer == target.communicator->rank());
  if (last == nullptr) {
    last = &add_message_entry(std::move(target), Kind::point_to_point);
    last->deadline_ms = deadline_ms;
  }
  // The longest deadline of all; 0 is the communicator's own.
  last->deadline_ms = last->deadline_ms == 0 || deadline_ms == 0 ? 0 : std::max(last->deadline_ms, deadline_ms);
  last->transfers.push_back(std::move(transfer));
}

void CallGroup::add(Target target, std::vector<Transfer> exchange, std::uint32_t deadline_ms) {
  Entry& entry = add_message_entry(std::move(target), Kind::exchange);
  entry.transfers = std::move(exchange);
  entry.deadline_ms = deadline_ms;
}

void CallGroup::add_failure(const Status& status) { keep_first(failure_, status); }

Status CallGroup::end() {
  if (depth_ == 0) return failure(Code::invalid_usage, "setoGroupEnd: this thread has started no group");
  if (--depth_ > 0) return {};
  std::vector<Entry> entries = take_entries();
  Status first = std::exchange(failure_, Status());
  if (!entries.empty()) keep_first(first, issue_all(entries));
  return first;
}

void CallGroup::drop() {
  if (depth_ > 0) --depth_;
  if (depth_ > 0) return;
  static_cast<void>(take_entries());
  failure_ = Status();
}

Status CallGroup::run_one(Entry& entry) {
  Communicator& communicator = *entry.target.communicator;
  if (entry.kind == Kind::collective) return communicator.run(entry.call);
  return communicator.run(TransferCall{entry.transfers,
                                       entry.kind == Kind::exchange ? TransferKind::all_to_all_v : TransferKind::point_to_point,
                                       entry.deadline_ms});
}

Result<double> CallGroup::simulate() {
  if (depth_ == 0) return failure(Code::invalid_usage, "setoGroupSimulateEnd: this thread has started no group");
  if (--depth_ > 0) return -1.0;
  std::vector<Entry> entries = take_entries();
  SETO_TRY(std::exchange(failure_, Status()));
  use_own_copies(entries);
  std::map<const Communicator*, double> seconds;
  for (const Entry& entry : entries) {
    if (entry.target.alive) SETO_TRY(entry.target.alive());
    const Communicator& communicator = *entry.target.communicator;
    if (communicator.failed()) return communicator.first_failure();
    SETO_ASSIGN(const double one, entry.kind == Kind::collective ? estimated_seconds(communicator, entry.call)
                                                                 : estimated_seconds(communicator, std::span(entry.transfers)));
    seconds[&communicator] += one;
  }
  double longest = 0;
  for (const auto& [communicator, sum] : seconds) longest = std::max(longest, sum);
  return longest;
}

void CallGroup::use_own_copies(std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    entry.call.counts = entry.counts;
    entry.call.displacements = entry.displacements;
    if (entry.call.scalar != nullptr) entry.call.scalar = entry.scalar;
  }
}

Status CallGroup::issue_all(std::vector<Entry>& entries) {
  Status first;
  use_own_copies(entries);
  if (entries.size() == 1 && entries.front().target.stream == nullptr) {
    if (entries.front().target.alive) SETO_TRY(entries.front().target.alive());
    return run_one(entries.front());
  }
  // Operations get their numbers in the order of the calls, on whatever stream they are.
  std::deque<HostStream::Batch> batches;  // in the order of their first calls
  std::map<const HostStream*, HostStream::Batch*> batch_of;
  std::vector<std::unique_ptr<Task>> blocking;
  MultiContextWait waits;
  for (Entry& entry : entries) {
    if (entry.target.alive) {
      if (Status alive = entry.target.alive(); !alive.ok()) {
        keep_first(first, std::move(alive));
        continue;
      }
    }
    Communicator& communicator = *entry.target.communicator;
    if (communicator.failed()) {
      keep_first(first, communicator.first_failure());
      continue;
    }
    const TransferCall transfers{entry.transfers,
                                 entry.kind == Kind::exchange ? TransferKind::all_to_all_v : TransferKind::point_to_point,
                                 entry.deadline_ms};
    if (HostStream* const stream = entry.target.stream.get()) {
      HostStream::Batch*& known = batch_of[stream];
      if (known == nullptr) known = &batches.emplace_back(*stream);
      HostStream::Batch& batch = *known;
      keep_first(first,
                 entry.kind == Kind::collective ? batch.add(communicator, entry.call) : batch.add(communicator, transfers));
    } else {
      blocking.push_back(entry.kind == Kind::collective ? communicator.issue(entry.call, nullptr)
                                                        : communicator.issue(transfers, nullptr));
      waits.add(communicator.context(), *blocking.back());
    }
  }
  for (HostStream::Batch& batch : batches) batch.queue();
  waits.run();
  for (const std::unique_ptr<Task>& task : blocking) keep_first(first, task->status());
  return first;
}

}  // namespace seto

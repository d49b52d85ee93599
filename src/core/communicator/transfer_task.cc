#include "src/core/communicator/transfer_task.h"

#include <utility>

#include "src/base/log.h"
#include "src/core/launch/recorded_transfers.h"

namespace seto {
namespace {

// At most 64 KiB each: enough to keep a single task moving, few enough that other tasks of the context get their turn.
constexpr std::uint32_t kPiecesAtOnce = 16;

using Direction = LocalTransfer::Direction;

}  // namespace

TransferTask::TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call,
                           const RecorderEntry& record)
    : Task(prepared.exchange > 0 ? &communicator.transfers().exchanges() : nullptr, prepared.exchange),
      communicator_(communicator),
      prepared_(std::move(prepared)),
      limit_(call.deadline_ms, communicator.config()),
      deadline_(call.until),
      of_init_(call.until.has_value()),
      gate_(nullptr),
      record_(record) {
  if (of_init_) late_.silence();
}

TransferTask::TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call, TaskGate* gate)
    : TransferTask(communicator, std::move(prepared), call, RecorderEntry()) {
  gate_ = gate;
  record_.issue(communicator.observability(), recorded(call), 0, call.mark);
}

Task::Step TransferTask::advance() {
  if (!begun_) {
    if (communicator_.failures().failed_anywhere()) {
      finish(communicator_.first_failure());
      return Step::ended;
    }
    if (gate_ != nullptr && !gate_->open()) return Step::blocked;
    begun_ = true;
    record_.begin(gate_ != nullptr || deadline_.has_value());
    if (prepared_.launch == nullptr) {
      finish(std::move(prepared_.first_wrong));
      return Step::ended;
    }
    if (prepared_.stores != nullptr) {
      way_ = prepared_.stores->next();
      prepared_.launch->set_stores(way_.slots, way_.results);
      started_ticks_ = ticks();
    }
  }
  const std::uint64_t moved = prepared_.launch->moved();
  if (prepared_.launch->advance(kPiecesAtOnce)) {
    finish(outcome());
    return Step::ended;
  }
  return prepared_.launch->moved() != moved ? Step::moved : Step::blocked;
}

Status TransferTask::outcome() {
  if (started_ticks_ != 0) prepared_.stores->took(way_, ticks() - started_ticks_);
  Status first = std::move(prepared_.first_wrong);
  for (const TransferLaunch::Refused& refused : prepared_.launch->refused()) {
    const bool rejected = !prepared_.rejections[refused.transfer].ok();  // by this rank, which reports it below
    const bool disagree = !rejected && refused.theirs.verdict == 0;
    Status status = rejected ? prepared_.rejections[refused.transfer] : refusal(refused);
    // After a disagreement it is unknown which messages belong together.
    if (disagree) communicator_.fail(status, prepared_.transfers[refused.transfer].peer);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status TransferTask::refusal(const TransferLaunch::Refused& refused) const {
  const LocalTransfer& transfer = prepared_.transfers[refused.transfer];
  const Direction theirs = transfer.direction == Direction::send ? Direction::receive : Direction::send;
  const std::string own = describe(transfer.direction, prepared_.headers[refused.transfer], transfer.peer);
  if (refused.theirs.verdict != 0)
    return failure(Code::remote_error, "%s: rank %d rejected its call (%s), so this one cannot end", own.c_str(), transfer.peer,
                   name_of(static_cast<Code>(refused.theirs.verdict)).data());
  return failure(Code::remote_error, "rank %d calls %s, but rank %d calls %s", communicator_.rank(), own.c_str(), transfer.peer,
                 describe(theirs, refused.theirs, communicator_.rank()).c_str());
}

bool TransferTask::inspect() {
  if (begun_ && prepared_.launch != nullptr && record_.wanted(communicator_.failed())) record_.tell(wait());
  if (communicator_.failed()) {
    finish(communicator_.first_failure());
    return true;
  }
  if (!deadline_) deadline_ = Deadline::after_ms(limit_.ms());
  if (!begun_) return false;
  Rank culprit = communicator_.rank();
  Status reason = look_around(culprit);
  if (reason.ok()) {
    warn_if_slow();
    return false;
  }
  // Data that a peer sent before it left still counts, so look once more now that no more can arrive.
  const std::uint64_t moved = prepared_.launch->moved();
  if (prepared_.launch->advance(kPiecesAtOnce)) {
    finish(outcome());
    return true;
  }
  if (prepared_.launch->moved() != moved) return false;
  if (record_.wanted(true)) record_.tell(wait());
  communicator_.fail(reason, culprit);
  finish(communicator_.first_failure());
  return true;
}

Status TransferTask::look_around(Rank& culprit) {
  for (const std::uint32_t i : prepared_.launch->waiting()) {
    const LocalTransfer& transfer = prepared_.transfers[i];
    if (transfer.peer == communicator_.rank()) continue;
    Status loss = communicator_.members().loss_of(transfer.peer);
    if (loss.ok()) continue;
    if (transfer.direction == Direction::receive && communicator_.members().data_may_arrive_from(transfer.peer)) continue;
    // A rank that left may blame another rank; a rank that died has reported nothing.
    culprit = communicator_.members().has_left(transfer.peer) ? communicator_.members().blamed_by(transfer.peer) : transfer.peer;
    if (communicator_.members().has_explained(transfer.peer)) return loss;
    return failure(loss.code(), "%s: %s", describe(transfer.direction, prepared_.headers[i], transfer.peer).c_str(),
                   std::string(loss.text()).c_str());
  }
  if (Status broken = communicator_.members().peer_group().failure(); !broken.ok()) return broken;
  if (deadline_->stopped()) return failure(Code::aborted, "rank %d gave up", communicator_.rank());
  if (!deadline_->passed()) return {};
  if (of_init_) return failure(Code::timeout, "not ended before the deadline of the init: %s", pending().c_str());
  return failure(Code::timeout, "not ended within %s: %s", limit_.text().c_str(), pending().c_str());
}

void TransferTask::warn_if_slow() {
  if (!late_.due(limit_.ms())) return;
  SETO_LOG_AS(warn, (LogOrigin{communicator_.rank(), 0}), "sends and receives have not ended after %.3g s: %s",
              late_.seconds(limit_.ms()), pending().c_str());
  late_.silence();
}

// A send to a peer that has left can never end. A receive may: the peer may have sent its message before it left.
Status TransferTask::in_vain() const {
  for (std::size_t i = 0; prepared_.launch != nullptr && i < prepared_.transfers.size(); ++i) {
    const LocalTransfer& transfer = prepared_.transfers[i];
    if (transfer.direction != Direction::send || transfer.peer == communicator_.rank()) continue;
    Status loss = communicator_.members().loss_of(transfer.peer);
    if (loss.ok()) continue;
    if (communicator_.members().has_explained(transfer.peer)) return loss;
    return failure(loss.code(), "%s: %s", describe(transfer.direction, prepared_.headers[i], transfer.peer).c_str(),
                   std::string(loss.text()).c_str());
  }
  return {};
}

std::string TransferTask::pending() const {
  std::string text;
  for (const std::uint32_t i : prepared_.launch->waiting()) {
    const LocalTransfer& transfer = prepared_.transfers[i];
    if (!text.empty()) text += "; ";
    text += describe(transfer.direction, prepared_.headers[i], transfer.peer);
    const bool faces_send = transfer.direction == Direction::send && communicator_.transfers().has_pending(transfer.peer);
    if (faces_send)
      text += " faces a send of that rank which this rank does not receive (put sends in both directions into one group)";
    else
      text += transfer.direction == Direction::send ? " was not received" : " was not sent";
  }
  return text;
}

WaitReport TransferTask::wait() const {
  const std::vector<std::uint32_t> waiting = prepared_.launch->waiting();
  return {waiting.empty() ? -1 : prepared_.transfers[waiting.front()].peer, pending(), ""};
}

bool TransferTask::give_up(const Status& reason) {
  communicator_.failures().fail(reason, communicator_.rank());
  finish(communicator_.first_failure());
  return true;
}

void TransferTask::finish(Status status) {
  Communicator& communicator = communicator_;
  TaskGate* const gate = gate_;
  // A failed communicator has told its peers that they may reuse their slots, so what was read from them since may be wrong.
  if (communicator.failed() && status.ok()) status = communicator.first_failure();
  record_.end(status, communicator.failed(), deadline_.has_value() || started_ticks_ != 0);
  if (gate != nullptr) {
    communicator.queued().task_ended();
    gate->ended(status);
  }
  end(std::move(status));
}

}  // namespace seto

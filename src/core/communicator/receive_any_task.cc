#include "src/core/communicator/receive_any_task.h"

#include <string>
#include <utility>

#include "src/base/log.h"

namespace seto {
namespace {

RecordedCall recorded(const Transfer& transfer) {
  RecordedCall::Parts parts;
  parts.kind = RecordedKind::receive_any;
  parts.type = transfer.type;
  parts.count = transfer.count;
  if (static_cast<int>(transfer.type) < kDataTypeCount) parts.bytes = transfer.count * size_of(transfer.type);
  return RecordedCall::of(parts);
}

std::string awaited(const Transfer& transfer) {
  return "a message from any rank" + (transfer.tag == 0 ? std::string() : " with tag " + std::to_string(transfer.tag));
}

}  // namespace

ReceiveAnyTask::ReceiveAnyTask(Communicator& communicator, Status wrong, const ReceiveAnyCall& call, TaskGate* gate)
    : communicator_(communicator),
      wrong_(std::move(wrong)),
      call_(call),
      limit_(call.deadline_ms, communicator.config()),
      gate_(gate) {
  record_.issue(communicator.seeing(), recorded(call.transfer), 0, call.mark);
}

Task::Step ReceiveAnyTask::advance() {
  if (!begun_) {
    if (gate_ != nullptr && communicator_.failed()) {
      finish(communicator_.first_failure());
      return Step::ended;
    }
    if (gate_ != nullptr && !gate_->open()) return Step::blocked;
    begun_ = true;
    record_.begin(gate_ != nullptr);
    if (!wrong_.ok()) {
      finish(std::move(wrong_));
      return Step::ended;
    }
  }
  if (!receive_ && !found()) return Step::blocked;
  const Step step = receive_->advance();
  if (step == Step::ended) finish(receive_->status());
  return step;
}

bool ReceiveAnyTask::found() {
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) {
    if (peer == communicator_.rank()) continue;
    call_.transfer.peer = peer;
    std::optional<PreparedTransfers> prepared = communicator_.transfers_->take_waiting(call_.transfer);
    if (!prepared) continue;
    *call_.source = peer;
    const TransferCall call{std::span(&call_.transfer, 1), TransferKind::point_to_point, call_.deadline_ms, {}, call_.mark};
    receive_.emplace(communicator_, *std::move(prepared), call, record_);
    return true;
  }
  return false;
}

bool ReceiveAnyTask::inspect() {
  if (receive_) {
    if (!receive_->inspect()) return false;
    finish(receive_->status());
    return true;
  }
  if (begun_ && record_.wanted(communicator_.failed())) record_.tell(wait());
  if (communicator_.failed()) {
    finish(communicator_.first_failure());
    return true;
  }
  if (!deadline_) deadline_ = Deadline::after_ms(limit_.ms());
  if (!begun_) return false;
  Rank culprit = communicator_.rank();
  const Status reason = look_around(culprit);
  if (reason.ok()) {
    if (late_.due(limit_.ms())) {
      SETO_LOG_AS(warn, (LogOrigin{communicator_.rank(), 0}), "%s has not come after %.3g s", awaited(call_.transfer).c_str(),
                  late_.seconds(limit_.ms()));
      late_.silence();
    }
    return false;
  }
  if (found()) return false;  // what was sent before somebody left counts
  if (record_.wanted(true)) record_.tell(wait());
  communicator_.fail(reason, culprit);
  finish(communicator_.first_failure());
  return true;
}

// A rank that left in peace sends nothing more, and that is no failure as long as another one may.
Status ReceiveAnyTask::look_around(Rank& culprit) const {
  bool somebody = false;
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) {
    if (peer == communicator_.rank()) continue;
    const Status gone = communicator_.why_gone(peer);
    if (gone.ok() || communicator_.may_still_bring(peer)) {
      somebody = true;
      continue;
    }
    const std::uint32_t left = communicator_.circle_->fate_of(static_cast<std::uint32_t>(peer)).reason;
    if (left == static_cast<std::uint32_t>(Code::invalid_usage)) continue;
    culprit = left != 0 ? communicator_.blamed_by(peer) : peer;
    if (communicator_.said_why(peer)) return gone;
    return failure(gone.code(), "the wait for %s: %s", awaited(call_.transfer).c_str(), std::string(gone.text()).c_str());
  }
  if (Status broken = communicator_.circle_->failure(); !broken.ok()) return broken;
  if (!somebody)
    return failure(Code::remote_error, "the wait for %s: all other ranks have left the communicator",
                   awaited(call_.transfer).c_str());
  if (!deadline_->passed()) return {};
  return failure(Code::timeout, "not ended within %s: %s has not come", limit_.text().c_str(), awaited(call_.transfer).c_str());
}

WaitOfCall ReceiveAnyTask::wait() const { return {-1, "waits for " + awaited(call_.transfer), ""}; }

void ReceiveAnyTask::finish(Status status) {
  Communicator& communicator = communicator_;
  TaskGate* const gate = gate_;
  if (communicator.failed() && status.ok()) status = communicator.first_failure();
  if (!receive_) record_.end(status, communicator.failed(), deadline_.has_value());
  if (gate != nullptr) {
    communicator.task_ended();
    gate->ended(status);
  }
  end(std::move(status));
}

}  // namespace seto

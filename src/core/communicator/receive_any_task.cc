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
  record_.issue(communicator.observability(), recorded(call.transfer), 0, call.mark);
}

Task::Step ReceiveAnyTask::advance() {
  if (!begun_) {
    if (communicator_.failures().failed_anywhere()) {
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
  if (!receive_ && !find_message()) return Step::blocked;
  const Step step = receive_->advance();
  if (step == Step::ended) finish(receive_->status());
  return step;
}

bool ReceiveAnyTask::find_message() {
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) {
    if (peer == communicator_.rank()) continue;
    call_.transfer.peer = peer;
    std::optional<PreparedTransfers> prepared = communicator_.transfers().take_waiting(call_.transfer);
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
      SETO_LOG_AS(warn, (LogOrigin{communicator_.rank(), 0}), "%s has not arrived after %.3g s", awaited(call_.transfer).c_str(),
                  late_.seconds(limit_.ms()));
      late_.silence();
    }
    return false;
  }
  if (find_message()) return false;  // a message that a peer sent before it left still counts
  if (record_.wanted(true)) record_.tell(wait());
  communicator_.fail(reason, culprit);
  finish(communicator_.first_failure());
  return true;
}

// A rank that left without a failure sends nothing more. That is a failure only if no other rank can send either.
Status ReceiveAnyTask::look_around(Rank& culprit) const {
  bool some_may_send = false;
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) {
    if (peer == communicator_.rank()) continue;
    const Status loss = communicator_.members().loss_of(peer);
    if (loss.ok() || communicator_.members().data_may_arrive_from(peer)) {
      some_may_send = true;
      continue;
    }
    const std::uint32_t left = communicator_.members().fate_of(peer).reason;
    if (left == static_cast<std::uint32_t>(Code::invalid_usage)) continue;
    culprit = left != 0 ? communicator_.members().blamed_by(peer) : peer;
    if (communicator_.members().has_explained(peer)) return loss;
    return failure(loss.code(), "the wait for %s: %s", awaited(call_.transfer).c_str(), std::string(loss.text()).c_str());
  }
  if (Status broken = communicator_.members().peer_group().failure(); !broken.ok()) return broken;
  if (!some_may_send)
    return failure(Code::remote_error, "the wait for %s: all other ranks have left the communicator",
                   awaited(call_.transfer).c_str());
  if (!deadline_->passed()) return {};
  return failure(Code::timeout, "not ended within %s: %s has not arrived", limit_.text().c_str(),
                 awaited(call_.transfer).c_str());
}

WaitReport ReceiveAnyTask::wait() const { return {-1, "waits for " + awaited(call_.transfer), ""}; }

bool ReceiveAnyTask::give_up(const Status& reason) {
  communicator_.failures().fail(reason, communicator_.rank());
  if (receive_ && !receive_->ended()) (void)receive_->give_up(reason);
  finish(communicator_.first_failure());
  return true;
}

void ReceiveAnyTask::finish(Status status) {
  Communicator& communicator = communicator_;
  TaskGate* const gate = gate_;
  if (communicator.failed() && status.ok()) status = communicator.first_failure();
  if (!receive_) record_.end(status, communicator.failed(), deadline_.has_value());
  if (gate != nullptr) {
    communicator.queued().task_ended();
    gate->ended(status);
  }
  end(std::move(status));
}

}  // namespace seto

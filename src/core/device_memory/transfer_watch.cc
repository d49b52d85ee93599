#include "src/core/device_memory/transfer_watch.h"

#include <string>

#include "src/base/log.h"

namespace seto {
namespace {

constexpr std::uint64_t kLookMs = 20;
constexpr std::uint64_t kLostMs = 500;  // a kernel reads what a rank had sent before it left

bool sends(const LocalTransfer& pair) { return pair.direction == LocalTransfer::Direction::send; }

}  // namespace

TransferWatch::Waiting TransferWatch::waiting(const Launches::State& state) const {
  return shapes_.waiting(*state.shape->transfers, state.launch, state.exchange);
}

void TransferWatch::check_refusal() {
  if (!launches_.has_refused()) return;
  if (const Status refusal = shapes_.refusal(); !refusal.ok()) control_.fail(refusal, control_.rank());
}

void TransferWatch::judge(const Launches::State& state) {
  if (state.launch != launch_) {
    launch_ = state.launch;
    slow_ = {};
    lost_until_.reset();
  }
  if (next_look_.passed()) {
    next_look_ = Deadline::after_ms(kLookMs);
    look_around(state);
  }
  if (control_.failed() || !state.has_begun || state.is_overdue) return;
  if (!slow_.due(state.limit.ms())) return;
  SETO_LOG_AS(warn, (LogOrigin{control_.rank(), 0}), "sends and receives have not ended after %.3g s: %s",
              SlowCallWarning::seconds(state.limit.ms()), TransferShapes::text_of(waiting(state)).c_str());
  slow_.silence();
}

// A rank that has left wrote all that it sent, and its reports of what it had read, into this rank's workspace before.
void TransferWatch::look_around(const Launches::State& state) {
  if (!state.has_begun) return control_.check_peers();
  const Members& members = control_.members();
  for (const TransferShapes::Waiting& one : waiting(state)) {
    const Status loss = members.loss_of(one.pair.peer);
    if (loss.ok()) continue;
    if (relay_ != nullptr && !sends(one.pair) && relay_->messages().may_bring(one.pair.peer)) continue;
    const bool has_left = members.has_left(one.pair.peer);
    if (!lost_until_) lost_until_ = Deadline::after_ms(kLostMs);
    if (!lost_until_->passed() && !members.has_explained(one.pair.peer)) return;
    const Rank culprit = has_left ? members.blamed_by(one.pair.peer) : one.pair.peer;
    if (members.has_explained(one.pair.peer)) return control_.fail(loss, culprit);
    return control_.fail(failure(loss.code(), "%s: %s", one.text.c_str(), std::string(loss.text()).c_str()), culprit);
  }
}

// The lanes have said at which message they were.
void TransferWatch::fail_overdue(const Launches::State& state) {
  control_.fail(failure(Code::timeout, "not ended within %s: %s", state.limit.text().c_str(),
                        TransferShapes::text_of(waiting(state)).c_str()),
                control_.rank());
}

}  // namespace seto

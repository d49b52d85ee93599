#include "src/control/network/peer_probe.h"

#include <algorithm>

#include "src/control/local/local_connector.h"

namespace seto {
namespace {

// The time before the first probe: a peer that is as fast has connected by then.
constexpr int kFirstMs = 25;
constexpr int kLookMs = 5;  // between reads while a probe is under way
// Longer than a TcpAuthenticator waits for a key before it reports that it has none.
constexpr std::uint64_t kProbeTimeoutMs = 3'000;
// A process that was never reached may still be able to connect to this one: it does not count as dead at once.
constexpr std::uint64_t kUnreachedGraceMs = 1'500;

}  // namespace

PeerProbe::PeerProbe(const TcpConnector::Plan& plan, ReachedAddresses& reached)
    : remote_(plan.remote),
      key_(plan.request.key),
      tls_(plan.tls),
      neither_accepts_(plan.neither_accepts),
      reached_(reached),
      next_(Deadline::after_ms(kFirstMs)),
      interval_ms_(kFirstMs) {
  // In a probe the roles are swapped: the waiting side is the caller.
  claim_ = plan.claim;
  claim_.purpose = kPurposeProbe;
  std::swap(claim_.caller, claim_.answerer);
  std::swap(claim_.caller_context, claim_.answerer_context);
}

int PeerProbe::wait_ms() const { return dialer_ ? kLookMs : next_.remaining_ms(); }

Status PeerProbe::step() {
  if (dialer_) return ask();
  if (!next_.passed()) return {};
  if (remote_.dial_only) {  // no peer reaches it, so its silence says nothing
    last_failure_ = neither_accepts_ ? kNeitherAccepts : "it cannot be asked, because it only dials out (SETO_DIAL_ONLY)";
    schedule_next();
    return {};
  }
  SETO_ASSIGN(auto addresses, reached_.addresses_of(remote_));
  dialer_.emplace(Dialer::Target{std::move(addresses), key_, claim_, tls_});
  dial_until_ = Deadline::after_ms(kProbeTimeoutMs);
  return ask();
}

Status PeerProbe::ask() {
  const auto answer = dialer_->advance(0);
  const bool known = reached_.found(remote_.process).has_value();
  if (dialer_->found()) reached_.remember(remote_.process, *dialer_->found());
  if (answer.ok() && !answer.value() && !dial_until_.passed()) return {};
  if (!answer.ok() && dialer_->refused()) return answer.status();
  if (!answer.ok() && dialer_->tls_failed())
    return failure(Code::remote_error, "no TLS with its process: %s", dialer_->report().c_str());
  const bool none_listening = !answer.ok() && dialer_->none_listening();
  last_failure_ = answer.ok() && answer.value() ? std::string() : dialer_->report();
  if (!last_failure_.empty() && !dialer_->found()) last_failure_ += std::string("; ") + kReachRemedy;
  if (!none_listening && !dialer_->key_unknown()) {
    given_up_at_.reset();
  } else if (!given_up_at_) {
    given_up_at_ = Deadline::after_ms(!none_listening ? kRetryMs : known ? 0 : kUnreachedGraceMs);
  }
  if (given_up_at_ && given_up_at_->passed())
    return failure(Code::remote_error, "its process %s: %s", none_listening ? "has ended" : "cannot be reached",
                   last_failure_.c_str());
  schedule_next();
  return {};
}

void PeerProbe::schedule_next() {
  dialer_.reset();
  interval_ms_ = std::min(2 * interval_ms_, static_cast<int>(kProbeMs));
  next_ = Deadline::after_ms(static_cast<std::uint64_t>(interval_ms_));
}

}  // namespace seto

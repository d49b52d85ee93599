#include "src/control/network/peer_probe.h"

#include <algorithm>

#include "src/control/local/local_connector.h"

namespace seto {
namespace {

// The first time it asks: a peer that is as fast has called by then.
constexpr int kFirstMs = 25;
constexpr int kLookMs = 5;  // for the answer to a question under way
// Longer than a front door waits for a key to come before it says that it has none.
constexpr std::uint64_t kQuestionMs = 3'000;
// Who could never be reached may yet be able to reach us: it is not taken for dead at once.
constexpr std::uint64_t kDoubtMs = 1'500;

}  // namespace

Inquiry::Inquiry(const FrontDoor::Plan& plan, AddressBook& book)
    : remote_(plan.remote), key_(plan.visit.key), book_(book), next_(Deadline::after_ms(kFirstMs)), interval_ms_(kFirstMs) {
  // In the question it is the asker who calls.
  claim_ = plan.claim;
  claim_.purpose = kPurposeQuestion;
  std::swap(claim_.caller, claim_.answerer);
  std::swap(claim_.caller_context, claim_.answerer_context);
}

int Inquiry::patience_ms() const { return dial_ ? kLookMs : next_.remaining_ms(); }

Status Inquiry::step() {
  if (dial_) return ask();
  if (!next_.passed()) return {};
  SETO_ASSIGN(auto addresses, book_.addresses_of(remote_));
  dial_.emplace(Dial::Target{std::move(addresses), key_, claim_});
  dial_until_ = Deadline::after_ms(kQuestionMs);
  return ask();
}

Status Inquiry::ask() {
  const auto answer = dial_->advance(0);
  const bool known = book_.found(remote_.process).has_value();
  if (dial_->found()) book_.remember(remote_.process, *dial_->found());
  if (answer.ok() && !answer.value() && !dial_until_.passed()) return {};
  if (!answer.ok() && dial_->refused()) return answer.status();
  const bool nobody = !answer.ok() && dial_->nobody_there();
  doubts_ = answer.ok() && answer.value() ? std::string() : dial_->report();
  if (!nobody && !dial_->key_unknown()) {
    given_up_at_.reset();
  } else if (!given_up_at_) {
    given_up_at_ = Deadline::after_ms(!nobody ? kPatienceMs : known ? 0 : kDoubtMs);
  }
  if (given_up_at_ && given_up_at_->passed())
    return failure(Code::remote_error, "its process %s: %s", nobody ? "has ended" : "cannot be asked", doubts_.c_str());
  rest();
  return {};
}

void Inquiry::rest() {
  dial_.reset();
  interval_ms_ = std::min(2 * interval_ms_, static_cast<int>(kProbeMs));
  next_ = Deadline::after_ms(static_cast<std::uint64_t>(interval_ms_));
}

}  // namespace seto

// How two contexts come to share a wire.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/control/network/peer_probe.h"
#include "src/control/wire_hub.h"

namespace seto {
namespace {

// Answerers' entries beyond it are dropped, with what they hold.
constexpr std::size_t kProposedLimit = 65'536;
constexpr int kLookMs = 100;  // where nobody wakes who waits

struct Contexts {
  ContextId caller;
  ContextId answerer;
};

Status too_late(const char* what, const std::string& why) {
  return failure(Code::timeout, "its process %s before the deadline of the init%s%s", what, why.empty() ? "" : ": ", why.c_str());
}

Status reason_in(std::string_view bytes) {
  const bool aborted = !bytes.empty() && bytes.front() == static_cast<char>(Code::aborted);
  std::string text(bytes.substr(std::min<std::size_t>(1, bytes.size())));
  for (char& letter : text)
    if (letter < ' ' || letter > '~') letter = '?';
  return {aborted ? Code::aborted : Code::remote_error, std::move(text)};
}

}  // namespace

WireHub::Union WireHub::union_of(const FrontDoor::Plan& plan) {
  return {
      {key_id(plan.visit.key), plan.remote.process}, plan.claim.caller_context, plan.claim.answerer_context, plan.claim.attempt};
}

Result<std::shared_ptr<Wire>> WireHub::meet(const Visit& visit) {
  Visit control = visit;
  control.purpose = kPurposeControl;
  control.index = 0;
  SETO_ASSIGN(const FrontDoor::Plan plan, door_.plan(control));
  const Admission heard = door_.admit(visit.key);
  return plan.calls ? call(plan) : answer(plan);
}

Result<std::shared_ptr<Wire>> WireHub::call(const FrontDoor::Plan& plan) {
  const Union which = union_of(plan);
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      proposals_[which] = {};
    }
    Result<bool> agreed = false;
    Result<Dialed> dialed = wire_for(plan);
    if (dialed.ok()) agreed = propose(plan, dialed.value());
    {
      const std::lock_guard lock(mutex_);
      proposals_.erase(which);
    }
    if (!dialed.ok()) return dialed.status();
    if (!agreed.ok()) return agreed.status();
    if (agreed.value()) return std::shared_ptr<Wire>(dialed.value().wire);
  }
}

// One that is there, or that another thread is about to make; else a new one.
Result<WireHub::Dialed> WireHub::wire_for(const FrontDoor::Plan& plan) {
  const WirePeer peer = union_of(plan).peer;
  const Deadline& until = plan.visit.until;
  std::shared_ptr<TcpWire> present;  // outlives the lock: its handler may wait for that
  {
    std::unique_lock lock(mutex_);
    std::erase_if(lines_, [](const auto& entry) { return !entry.second.dialing && entry.second.wire.expired(); });
    while (lines_[peer].dialing) {
      if (until.passed()) return too_late("did not answer", {});
      changed_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
    }
    present = lines_[peer].wire.lock();
    if (present != nullptr && present->live()) return Dialed{present, false};
    lines_[peer].dialing = true;
  }
  Result<std::shared_ptr<TcpWire>> wire = connect(plan);
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[peer];
    line.dialing = false;
    if (wire.ok()) line.wire = wire.value();
  }
  changed_.notify_all();
  if (!wire.ok()) return wire.status();
  return Dialed{std::move(wire).value(), true};
}

Result<std::shared_ptr<TcpWire>> WireHub::connect(const FrontDoor::Plan& plan) {
  SETO_ASSIGN(PrivateFd socket, door_.call(plan));
  SETO_ASSIGN(auto wire, TcpWire::create(*this, union_of(plan).peer, std::move(socket)));
  enter(wire);
  return wire;
}

// False: the other end has left the wire, and another is needed.
Result<bool> WireHub::propose(const FrontDoor::Plan& plan, const Dialed& dialed) {
  const Union which = union_of(plan);
  const Deadline& until = plan.visit.until;
  if (!dialed.fresh) say(*dialed.wire, WireFrameKind::join, which);
  std::unique_lock lock(mutex_);
  while (true) {
    const Proposal& proposal = proposals_[which];
    if (proposal.answer == Proposal::Answer::joined) return true;
    if (proposal.answer == Proposal::Answer::refused) return proposal.reason;
    if (dialed.wire->dead().load(std::memory_order_acquire)) {
      return failure(Code::remote_error, "%s", dialed.wire->why().c_str());
    }
    if (!dialed.wire->live()) return false;
    if (until.passed()) return too_late("did not take the call", {});
    changed_.wait_for(lock, std::chrono::milliseconds(std::min(until.wait_ms(), kLookMs)));
  }
}

Result<std::shared_ptr<Wire>> WireHub::answer(const FrontDoor::Plan& plan) {
  const Union which = union_of(plan);
  const Deadline& until = plan.visit.until;
  const std::unique_ptr<Inquiry> inquiry = door_.inquire(plan);
  while (true) {
    std::shared_ptr<TcpWire> wire;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(std::min(until.wait_ms(), inquiry->patience_ms())),
                        [&] { return proposed_.count(which) > 0; });
      if (const auto found = proposed_.find(which); found != proposed_.end()) {
        wire = std::move(found->second);
        proposed_.erase(found);
      }
    }
    if (wire != nullptr && wire->live()) {
      say(*wire, WireFrameKind::joined, which);
      return std::shared_ptr<Wire>(std::move(wire));
    }
    if (until.passed()) return too_late("did not call", inquiry->doubts());
    SETO_TRY(inquiry->step());
  }
}

// On the control thread.
void WireHub::welcome(const VisitKey& caller, PrivateFd socket) {
  const Claim& claim = caller.claim;
  auto wire = TcpWire::create(*this, {caller.key, claim.caller}, std::move(socket));
  if (!wire.ok()) return;
  enter(wire.value());
  hear_join(wire.value(), {wire.value()->peer(), claim.caller_context, claim.answerer_context, claim.attempt});
}

// On the control thread. A frame's key is the attempt.
void WireHub::negotiate(const std::shared_ptr<TcpWire>& wire, const WireFrame& frame) {
  Contexts contexts{};
  if (frame.bytes.size() < sizeof contexts) return;
  std::memcpy(&contexts, frame.bytes.data(), sizeof contexts);
  const Union which{wire->peer(), contexts.caller, contexts.answerer, frame.key};
  if (frame.kind == WireFrameKind::join) return hear_join(wire, which);
  {
    const std::lock_guard lock(mutex_);
    const auto found = proposals_.find(which);
    if (found == proposals_.end()) return;
    const bool joined = frame.kind == WireFrameKind::joined;
    found->second.answer = joined ? Proposal::Answer::joined : Proposal::Answer::refused;
    if (!joined) found->second.reason = reason_in(frame.bytes.substr(sizeof contexts));
  }
  changed_.notify_all();
}

void WireHub::hear_join(const std::shared_ptr<TcpWire>& wire, const Union& which) {
  std::optional<Status> reason;
  std::shared_ptr<TcpWire> replaced;
  {
    // Under the lock that decline() takes: the attempt is declined before, or finds what is proposed.
    const std::lock_guard lock(mutex_);
    reason = door_.declined(which.attempt, which.answerer);
    if (!reason && proposed_.size() >= kProposedLimit) reason = failure(Code::unavailable, "too many wait for its process");
    if (!reason) replaced = std::exchange(proposed_[which], wire);
  }
  changed_.notify_all();
  if (reason) say(*wire, WireFrameKind::refused, which, *reason);
}

void WireHub::decline(AttemptId attempt, ContextId mine, const Status& reason) {
  std::vector<std::pair<Union, std::shared_ptr<TcpWire>>> in_vain;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = proposed_.begin(); entry != proposed_.end();) {
      const bool meant = entry->first.attempt == attempt && entry->first.answerer == mine;
      if (meant) in_vain.emplace_back(entry->first, std::move(entry->second));
      entry = meant ? proposed_.erase(entry) : std::next(entry);
    }
  }
  for (const auto& [which, wire] : in_vain) say(*wire, WireFrameKind::refused, which, reason);
}

void WireHub::say(TcpWire& wire, WireFrameKind kind, const Union& which, const Status& reason) {
  const Contexts contexts{which.caller, which.answerer};
  std::string bytes(reinterpret_cast<const char*>(&contexts), sizeof contexts);
  if (!reason.ok()) {
    bytes += static_cast<char>(reason.code());
    bytes += reason.text().substr(0, kVerdictTextLimit);
  }
  wire.send({kind, 0, which.attempt, 0, bytes});
}

}  // namespace seto

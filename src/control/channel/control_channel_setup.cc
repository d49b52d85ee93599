// How two contexts agree to share a control channel.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/control/channel/control_channel_hub.h"
#include "src/control/network/peer_probe.h"

namespace seto {
namespace {

// The most proposals of peers that wait for a context here; more are refused.
constexpr std::size_t kProposedLimit = 65'536;
constexpr int kLookMs = 100;  // polling interval for changes that do not notify

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
  for (char& header : text)
    if (header < ' ' || header > '~') header = '?';
  return {aborted ? Code::aborted : Code::remote_error, std::move(text)};
}

}  // namespace

ControlChannelHub::ContextPair ControlChannelHub::pair_of(const TcpConnector::Plan& plan) {
  return {{key_id(plan.request.key), plan.remote.process},
          plan.claim.caller_context,
          plan.claim.answerer_context,
          plan.claim.attempt};
}

Result<std::shared_ptr<ControlChannel>> ControlChannelHub::connect(const ConnectRequest& request) {
  ConnectRequest control = request;
  control.purpose = kPurposeControl;
  control.index = 0;
  SETO_ASSIGN(const TcpConnector::Plan plan, connector_.plan(control));
  const Admission admission = connector_.admit(request.key);
  SETO_ASSIGN(auto channel, plan.calls ? connect_as_caller(plan) : connect_as_answerer(plan));
  channel->set_route(std::make_shared<ControlChannelRoute>(ControlChannelRoute{plan, connector_.admit(request.key)}));
  return std::shared_ptr<ControlChannel>(std::move(channel));
}

Result<std::shared_ptr<TcpControlChannel>> ControlChannelHub::connect_as_caller(const TcpConnector::Plan& plan) {
  const ContextPair which = pair_of(plan);
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      proposals_[which] = {};
    }
    Result<bool> agreed = false;
    Result<Dialed> dialed = channel_for(plan);
    if (dialed.ok()) agreed = propose(plan, dialed.value());
    {
      const std::lock_guard lock(mutex_);
      proposals_.erase(which);
    }
    if (!dialed.ok()) return dialed.status();
    if (!agreed.ok()) return agreed.status();
    if (agreed.value()) return dialed.value().channel;
  }
}

// Returns an existing channel, or one that another thread is opening; else opens a new one.
Result<ControlChannelHub::Dialed> ControlChannelHub::channel_for(const TcpConnector::Plan& plan) {
  const ControlChannelPeer peer = pair_of(plan).peer;
  const Deadline& until = plan.request.until;
  std::shared_ptr<TcpControlChannel> present;  // destroyed after the lock is released: its handler may wait for the lock
  {
    std::unique_lock lock(mutex_);
    std::erase_if(outgoing_, [](const auto& entry) { return !entry.second.dialing && entry.second.channel.expired(); });
    while (outgoing_[peer].dialing) {
      if (until.passed()) return too_late("did not answer", {});
      changed_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
    }
    present = outgoing_[peer].channel.lock();
    if (present != nullptr && present->live()) return Dialed{present, false};
    outgoing_[peer].dialing = true;
  }
  Result<std::shared_ptr<TcpControlChannel>> channel = open_channel(plan);
  {
    const std::lock_guard lock(mutex_);
    Outgoing& outgoing = outgoing_[peer];
    outgoing.dialing = false;
    if (channel.ok()) outgoing.channel = channel.value();
  }
  changed_.notify_all();
  if (!channel.ok()) return channel.status();
  return Dialed{std::move(channel).value(), true};
}

Result<std::shared_ptr<TcpControlChannel>> ControlChannelHub::open_channel(const TcpConnector::Plan& plan) {
  SETO_ASSIGN(SecureStream socket, connector_.dial(plan));
  SETO_ASSIGN(auto channel, TcpControlChannel::create(*this, pair_of(plan).peer, plan.claim, std::move(socket)));
  add_channel(channel);
  return channel;
}

// Returns false if the other end has closed the channel, and another one is needed.
Result<bool> ControlChannelHub::propose(const TcpConnector::Plan& plan, const Dialed& dialed) {
  const ContextPair which = pair_of(plan);
  const Deadline& until = plan.request.until;
  if (!dialed.fresh) send_frame(*dialed.channel, ControlFrameKind::propose, which);
  std::unique_lock lock(mutex_);
  while (true) {
    const Proposal& proposal = proposals_[which];
    if (proposal.answer == Proposal::Answer::agreed) return true;
    if (proposal.answer == Proposal::Answer::refused) return proposal.reason;
    if (dialed.channel->dead().load(std::memory_order_acquire)) {
      return failure(Code::remote_error, "%s", dialed.channel->why().c_str());
    }
    if (!dialed.channel->live()) return false;
    if (until.passed()) return too_late("did not accept the connection", {});
    changed_.wait_for(lock, std::chrono::milliseconds(std::min(until.wait_ms(), kLookMs)));
  }
}

Result<std::shared_ptr<TcpControlChannel>> ControlChannelHub::connect_as_answerer(const TcpConnector::Plan& plan) {
  const ContextPair which = pair_of(plan);
  const Deadline& until = plan.request.until;
  const std::unique_ptr<PeerProbe> probe = connector_.probe(plan);
  while (true) {
    std::shared_ptr<TcpControlChannel> channel;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(std::min(until.wait_ms(), probe->wait_ms())),
                        [&] { return proposed_.count(which) > 0; });
      if (const auto found = proposed_.find(which); found != proposed_.end()) {
        channel = std::move(found->second);
        proposed_.erase(found);
      }
    }
    if (channel != nullptr && channel->live()) {
      send_frame(*channel, ControlFrameKind::agree, which);
      return channel;
    }
    if (until.passed()) return too_late("did not connect", probe->last_failure());
    SETO_TRY(probe->step());
  }
}

// On the control thread.
void ControlChannelHub::on_accepted(const ConnectKey& caller, SecureStream socket) {
  const Claim& claim = caller.claim;
  auto channel = TcpControlChannel::create(*this, {caller.key, claim.caller}, claim, std::move(socket));
  if (!channel.ok()) return;
  add_channel(channel.value());
  handle_proposal(channel.value(), {channel.value()->peer(), claim.caller_context, claim.answerer_context, claim.attempt});
}

// On the control thread. A frame's key is the attempt.
void ControlChannelHub::negotiate(const std::shared_ptr<TcpControlChannel>& channel, const ControlFrame& frame) {
  Contexts contexts{};
  if (frame.bytes.size() < sizeof contexts) return;
  std::memcpy(&contexts, frame.bytes.data(), sizeof contexts);
  const ContextPair which{channel->peer(), contexts.caller, contexts.answerer, frame.key};
  if (frame.kind == ControlFrameKind::propose) return handle_proposal(channel, which);
  {
    const std::lock_guard lock(mutex_);
    const auto found = proposals_.find(which);
    if (found == proposals_.end()) return;
    const bool agreed = frame.kind == ControlFrameKind::agree;
    found->second.answer = agreed ? Proposal::Answer::agreed : Proposal::Answer::refused;
    if (!agreed) found->second.reason = reason_in(frame.bytes.substr(sizeof contexts));
  }
  changed_.notify_all();
}

void ControlChannelHub::handle_proposal(const std::shared_ptr<TcpControlChannel>& channel, const ContextPair& which) {
  std::optional<Status> reason;
  std::shared_ptr<TcpControlChannel> replaced;
  {
    // Holds the lock that decline() takes: either the attempt is declined already, or decline() finds this proposal.
    const std::lock_guard lock(mutex_);
    reason = connector_.declined(which.attempt, which.answerer);
    if (!reason && proposed_.size() >= kProposedLimit) reason = failure(Code::unavailable, "too many wait for its process");
    if (!reason) replaced = std::exchange(proposed_[which], channel);
  }
  changed_.notify_all();
  if (reason) send_frame(*channel, ControlFrameKind::refuse, which, *reason);
}

void ControlChannelHub::decline(AttemptId attempt, ContextId mine, const Status& reason) {
  std::vector<std::pair<ContextPair, std::shared_ptr<TcpControlChannel>>> in_vain;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = proposed_.begin(); entry != proposed_.end();) {
      const bool meant = entry->first.attempt == attempt && entry->first.answerer == mine;
      if (meant) in_vain.emplace_back(entry->first, std::move(entry->second));
      entry = meant ? proposed_.erase(entry) : std::next(entry);
    }
  }
  for (const auto& [which, channel] : in_vain) send_frame(*channel, ControlFrameKind::refuse, which, reason);
}

void ControlChannelHub::send_frame(TcpControlChannel& channel, ControlFrameKind kind, const ContextPair& which,
                                   const Status& reason) {
  const Contexts contexts{which.caller, which.answerer};
  std::string bytes(reinterpret_cast<const char*>(&contexts), sizeof contexts);
  if (!reason.ok()) {
    bytes += static_cast<char>(reason.code());
    bytes += reason.text().substr(0, kVerdictTextLimit);
  }
  channel.send({kind, 0, which.attempt, 0, bytes});
}

}  // namespace seto

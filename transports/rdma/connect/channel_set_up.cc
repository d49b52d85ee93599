#include "transports/rdma/connect/channel_set_up.h"

#include <algorithm>

namespace seto::rdma {

ChannelSetUp::ChannelSetUp(Setup setup) : setup_(std::move(setup)) {
  input_.interface = setup_.interface;
  input_.own = setup_.devices->ports();
  if (setup_.role == Role::follows) send(Offer{input_.own});
}

std::optional<std::string> ChannelSetUp::next_message() {
  if (outgoing_.empty()) return std::nullopt;
  std::string message = std::move(outgoing_.front());
  outgoing_.pop_front();
  return message;
}

Status ChannelSetUp::hear(std::string_view bytes) {
  if (state_ == State::failed) return {};
  const Result<SetUpMessage> message = decode_set_up(bytes);
  if (!message.ok()) {
    end_with(message.status());
    return why_;
  }
  // Each kind of message comes from one of the two roles.
  const bool of_follower = message.value().index() == 0 || message.value().index() == 2 || message.value().index() == 3;
  const bool expected = state_ != State::done && of_follower == (setup_.role == Role::selects) &&
                        (message.value().index() != 0 || (attempt_ == 0 && candidates_.empty()));
  if (!expected) {
    end_with(failure(Code::remote_error, "%s sends a message about RDMA that is not its turn", setup_.peer.c_str()));
    return why_;
  }
  std::visit([this](const auto& one) { hear_message(one); }, message.value());
  return {};
}

// ---- the end that selects ----

void ChannelSetUp::hear_message(const Offer& offer) {
  input_.peer = offer.ports;
  Selection selection = select(input_);
  if (selection.candidates.empty()) {
    const std::string text = explain_none(input_, selection);
    send(Decision{0, Verdict::give_up, text});
    return end_with({Code::unavailable, text});
  }
  candidates_ = std::move(selection.candidates);
  std::erase_if(candidates_, [this](const Candidate& one) {
    const auto uses = [](const PortName& port, const PortEnd& end) { return port.device == end.device && port.port == end.port; };
    return std::any_of(setup_.beside.begin(), setup_.beside.end(),
                       [&](const PortPair& pair) { return uses(pair.own, one.own) || uses(pair.peer, one.peer); });
  });
  if (candidates_.empty()) {
    const std::string text = "every pair of ports to " + setup_.peer + " has a port that carries another rail";
    send(Decision{0, Verdict::give_up, text});
    return end_with({Code::unavailable, text});
  }
  if (candidates_.size() > setup_.most_candidates) candidates_.resize(setup_.most_candidates);
  try_next();
}

void ChannelSetUp::try_next() {
  while (attempt_ < candidates_.size()) {
    const Candidate& next = candidates_[attempt_++];
    if (const Status status = make_channel(next.own); !status.ok()) {
      failed_.push_back(to_text(next) + ": " + std::string(status.text()));
      continue;
    }
    state_ = State::waiting;
    return send(Proposal{attempt_, channel_->address(), next.peer});
  }
  std::string text = "no RDMA path to " + setup_.peer + " works:";
  for (const std::string& each : failed_) text += " [" + each + "]";
  text.resize(std::min(text.size(), kMostText));  // the same at both ends
  send(Decision{attempt_, Verdict::give_up, text});
  end_with({Code::unavailable, text});
}

void ChannelSetUp::hear_message(const Acceptance& acceptance) {
  if (acceptance.attempt != attempt_ || channel_ == nullptr || state_ != State::waiting) return;
  peer_end_ = candidates_.at(attempt_ - 1).peer;
  if (const Status status = connect(acceptance.address); !status.ok()) return attempt_failed(status.text());
  send(Decision{attempt_, Verdict::probe, {}});
  begin_probe();
}

void ChannelSetUp::hear_message(const Refusal& refusal) {
  if (refusal.attempt == attempt_) attempt_failed(refusal.why);
}

void ChannelSetUp::attempt_failed(std::string_view why) {
  failed_.push_back(to_text(candidates_.at(attempt_ - 1)) + ": " + std::string(why));
  channel_.reset();
  try_next();
}

// ---- the end that follows ----

void ChannelSetUp::hear_message(const Proposal& proposal) {
  attempt_ = proposal.attempt;
  state_ = State::waiting;
  Status status = make_channel(proposal.yours);
  peer_end_ = {};
  if (status.ok()) status = connect(proposal.address);
  if (!status.ok()) {
    channel_.reset();
    return send(Refusal{attempt_, std::string(status.text())});
  }
  send(Acceptance{attempt_, channel_->address()});
}

void ChannelSetUp::hear_message(const Decision& decision) {
  if (decision.verdict == Verdict::give_up) return end_with({Code::unavailable, decision.why});
  if (decision.attempt != attempt_ || channel_ == nullptr) return;
  if (decision.verdict == Verdict::probe) return begin_probe();
  state_ = State::done;
}

// ---- both ----

Status ChannelSetUp::make_channel(const PortEnd& end) {
  channel_.reset();
  const auto& ports = input_.own;
  const auto port = std::find_if(ports.begin(), ports.end(),
                                 [&](const NamedPort& one) { return one.device == end.device && one.facts.number == end.port; });
  if (port == ports.end())
    return failure(Code::remote_error, "there is no port %u of an RDMA device %s here", end.port, end.device.c_str());
  RingChannel::Setup channel;
  own_end_ = end;
  if (end.gid_index.has_value()) {
    const auto& gids = port->facts.gids;
    const auto entry = std::find_if(gids.begin(), gids.end(), [&](const GidEntry& one) { return one.index == *end.gid_index; });
    if (entry == gids.end())
      return failure(Code::remote_error, "port %u of %s has no GID %u", end.port, end.device.c_str(), *end.gid_index);
    channel.gid = own_end_.gid = entry->gid;
  }
  SETO_ASSIGN(Devices::Device* const device, setup_.devices->device(end.device));
  channel.device = device->verbs.get();
  channel.completions = device->completions.get();
  channel.peer = setup_.peer;
  channel.ring_size = setup_.ring_size;
  channel.records = setup_.records;
  channel.sequence = setup_.random() & 0xff'ffff;
  channel.path = setup_.path;
  channel.path.port = end.port;
  channel.path.pkey_index = end.pkey_index;
  channel.path.gid_index = end.gid_index;
  channel.mtu = mtu_ = port->facts.mtu;
  channel.lid = own_end_.lid = port->facts.lid;
  SETO_ASSIGN(channel_, RingChannel::create(std::move(channel)));
  return {};
}

Status ChannelSetUp::connect(const ChannelAddress& peer) {
  peer_end_.gid = peer.gid;
  peer_end_.lid = peer.lid;
  mtu_ = std::min(mtu_, peer.mtu);
  return channel_->connect(peer);
}

void ChannelSetUp::begin_probe() {
  channel_->probe();
  channel_->flush();
  probe_until_ns_ = setup_.clock() + setup_.probe_ms * 1'000'000;
  state_ = State::probing;
}

bool ChannelSetUp::advance() {
  if (state_ == State::done || state_ == State::failed) return true;
  if (state_ != State::probing) return false;
  if (const Status status = setup_.devices->poll(); !status.ok()) {
    send(Decision{attempt_, Verdict::give_up, std::string(status.text())});
    end_with(status);
    return true;
  }
  channel_->flush();
  if (setup_.role == Role::follows) return false;  // the other end decides
  if (channel_->broken()) {
    attempt_failed(channel_->why().text());
  } else if (channel_->proved()) {
    send(Decision{attempt_, Verdict::use, {}});
    state_ = State::done;
  } else if (setup_.clock() > probe_until_ns_) {
    attempt_failed("no message came through");
  }
  return state_ == State::done || state_ == State::failed;
}

void ChannelSetUp::end_with(Status reason) {
  channel_.reset();
  why_ = std::move(reason);
  state_ = State::failed;
}

}  // namespace seto::rdma

#include "transports/rdma/connect/channel_set_up.h"

#include <algorithm>
#include <tuple>

namespace seto::rdma {

ChannelSetUp::ChannelSetUp(Setup setup) : setup_(std::move(setup)) {
  input_.interface = setup_.interface;
  input_.own = setup_.devices->ports();
  for (NamedPort& port : input_.own) port.facts.mtu = std::min(port.facts.mtu, setup_.most_mtu);
  if (setup_.role == Role::follows) send(Offer{input_.own, setup_.manager != nullptr});
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
  by_manager_ = setup_.manager != nullptr && offer.has_manager;
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
  if (by_manager_) drop_equal_calls();
  const std::size_t most = by_manager_ ? std::min(kMostCalls, setup_.most_candidates) : setup_.most_candidates;
  if (candidates_.size() > most) candidates_.resize(most);
  try_next();
}

// The manager is told addresses, not types of RoCE: candidates that differ in nothing else are the same call.
void ChannelSetUp::drop_equal_calls() {
  const auto call_of = [](const Candidate& one) {
    return std::tie(one.own.device, one.own.port, one.own.gid.bytes, one.peer.device, one.peer.port, one.peer.gid.bytes);
  };
  std::vector<Candidate> different;
  for (Candidate& one : candidates_)
    if (std::none_of(different.begin(), different.end(), [&](const Candidate& other) { return call_of(other) == call_of(one); }))
      different.push_back(std::move(one));
  candidates_ = std::move(different);
}

void ChannelSetUp::try_next() {
  while (attempt_ < candidates_.size()) {
    const Candidate& next = candidates_[attempt_++];
    if (const Status status = make_channel(next.own); !status.ok()) {
      failed_.push_back(to_text(next) + ": " + std::string(status.text()));
      continue;
    }
    state_ = State::waiting;
    Proposal proposal{attempt_, channel_->address(), next.peer, {}};
    if (by_manager_) proposal.token = token_ = random_token();
    return send(proposal);
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
  if (const Status status = by_manager_ ? call(acceptance) : connect(acceptance.address); !status.ok())
    return attempt_failed(status.text());
  if (by_manager_) {
    call_until_ns_ = setup_.clock() + setup_.manager_ms * 1'000'000;
    state_ = State::calling;
    return;
  }
  send(Decision{attempt_, Verdict::probe, {}});
  begin_probe();
}

void ChannelSetUp::hear_message(const Refusal& refusal) {
  if (refusal.attempt == attempt_ && channel_ != nullptr) attempt_failed(refusal.why);
}

void ChannelSetUp::attempt_failed(std::string_view why) {
  failed_.push_back(to_text(candidates_.at(attempt_ - 1)) + ": " + std::string(why));
  drop_channel();
  try_next();
}

// ---- the end that follows ----

void ChannelSetUp::hear_message(const Proposal& proposal) {
  attempt_ = proposal.attempt;
  state_ = State::waiting;
  Status status = make_channel(proposal.yours);
  peer_end_ = {};
  by_manager_ = proposal.token.has_value();
  token_ = proposal.token.value_or(Token());
  if (status.ok()) status = by_manager_ ? listen(proposal.address) : connect(proposal.address);
  if (!status.ok()) return refuse(status);
  Acceptance acceptance{attempt_, channel_->address(), {}};
  if (by_manager_) acceptance.listener = Listener{managed_->own_gid(), managed_->service()};
  send(acceptance);
}

void ChannelSetUp::refuse(const Status& why) {
  drop_channel();
  send(Refusal{attempt_, std::string(why.text())});
}

void ChannelSetUp::hear_message(const Decision& decision) {
  if (decision.verdict == Verdict::give_up) return end_with({Code::unavailable, decision.why});
  if (decision.attempt != attempt_ || channel_ == nullptr) return;
  if (managed_ != nullptr && !managed_->connected())
    return;  // not yet connected: no probe of this end can be sent, and the peer finds no path
  if (decision.verdict == Verdict::probe) return begin_probe();
  managed_.reset();
  state_ = State::done;
}

// ---- both ----

Status ChannelSetUp::make_channel(const PortEnd& end) {
  drop_channel();
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

// The port exists: the channel was made on it.
Result<ManagedPath::Setup> ChannelSetUp::managed(const ChannelAddress& peer) {
  if (setup_.manager == nullptr)
    return failure(Code::remote_error, "%s wants a path of the connection manager, which this end has not offered",
                   setup_.peer.c_str());
  const auto port = std::find_if(input_.own.begin(), input_.own.end(), [&](const NamedPort& one) {
    return one.device == own_end_.device && one.facts.number == own_end_.port;
  });
  const PortFacts& facts = port->facts;
  // InfiniBand within a subnet needs no GID for its packets, but the manager knows ports by theirs.
  const auto gid = std::find_if(facts.gids.begin(), facts.gids.end(), [&](const GidEntry& one) {
    return !own_end_.gid_index.has_value() || one.index == *own_end_.gid_index;
  });
  if (gid == facts.gids.end())
    return failure(Code::unavailable, "port %u of %s has no GID", own_end_.port, own_end_.device.c_str());
  ManagedPath::Setup managed;
  managed.manager = setup_.manager;
  managed.own.gid = gid->gid;
  managed.own.infiniband = facts.link_layer == LinkLayer::infiniband;
  managed.own.interface = gid->interface;
  managed.own.pkey = own_end_.pkey_index < facts.pkeys.size() ? facts.pkeys[own_end_.pkey_index] : std::uint16_t{0xffff};
  managed.device = own_end_.device;
  managed.port = own_end_.port;
  managed.peer = setup_.peer;
  managed.greeting = {channel_->queue_pair(), token_};
  managed.peer_queue_pair = peer.queue_pair;
  managed.traffic_class = setup_.path.traffic_class;
  managed.timeout_ms = static_cast<int>(setup_.manager_ms);
  managed.watch = setup_.watch;
  managed.connect = [this, peer](const QueuePairPath& path) {
    peer_end_.gid = peer.gid;
    peer_end_.lid = peer.lid;
    mtu_ = std::min({path.mtu, mtu_, peer.mtu});
    return channel_->connect(peer, path);
  };
  return managed;
}

Status ChannelSetUp::listen(const ChannelAddress& peer) {
  SETO_ASSIGN(ManagedPath::Setup setup, managed(peer));
  SETO_ASSIGN(managed_, ManagedPath::listen(std::move(setup)));
  return {};
}

Status ChannelSetUp::call(const Acceptance& acceptance) {
  if (!acceptance.listener.has_value())
    return failure(Code::remote_error, "%s does not listen for a call of the connection manager", setup_.peer.c_str());
  SETO_ASSIGN(ManagedPath::Setup setup, managed(acceptance.address));
  ManagerAddress peer = setup.own;  // of the same kind and partition
  peer.gid = acceptance.listener->gid;
  peer.service = acceptance.listener->service;
  SETO_ASSIGN(managed_, ManagedPath::call(std::move(setup), peer));
  return {};
}

bool ChannelSetUp::advance_manager() {
  if (managed_ == nullptr) return true;
  if (const Status status = managed_->advance(); !status.ok()) {
    if (setup_.role == Role::follows)
      refuse(status);
    else
      attempt_failed(status.text());
    return false;
  }
  if (state_ != State::calling) return true;
  if (managed_->connected()) {
    send(Decision{attempt_, Verdict::probe, {}});
    begin_probe();
  } else if (setup_.clock() > call_until_ns_) {
    attempt_failed("the call of the connection manager was not answered: see whether a firewall or a partition is in between");
    return false;
  }
  return true;
}

void ChannelSetUp::drop_channel() {
  managed_.reset();
  channel_.reset();
}

void ChannelSetUp::begin_probe() {
  channel_->probe();
  channel_->flush();
  probe_until_ns_ = setup_.clock() + setup_.probe_ms * 1'000'000;
  state_ = State::probing;
}

bool ChannelSetUp::advance() {
  if (state_ == State::done || state_ == State::failed) return true;
  if (!advance_manager()) return state_ == State::failed;
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
    managed_.reset();
    state_ = State::done;
  } else if (setup_.clock() > probe_until_ns_) {
    attempt_failed("no message came through");
  }
  return state_ == State::done || state_ == State::failed;
}

void ChannelSetUp::end_with(Status reason) {
  drop_channel();
  why_ = std::move(reason);
  state_ = State::failed;
}

}  // namespace seto::rdma

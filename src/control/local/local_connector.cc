#include "src/control/local/local_connector.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

// The time before the first probe: a peer that is as fast has connected by then.
constexpr std::uint64_t kFirstProbeMs = 25;

constexpr const char* kPeerEnded = "its process has ended";

// Replaces a timeout text of a lower layer by one that names the step.
Status late(const Status& status, const char* what) {
  if (status.code() != Code::timeout) return status;
  return failure(Code::timeout, "its process %s before the deadline of the init", what);
}

struct Proof {
  Token receiver;
  Token sender;
  CallKey key;
};

bool proves(const HandshakeMessage& message, const Proof& proof) {
  return equal(message.of_receiver, proof.receiver) && equal(message.of_sender, proof.sender) &&
         message.caller == proof.key.caller && message.answerer == proof.key.answerer && message.attempt == proof.key.attempt;
}

HandshakeMessage message_of(HandshakeKind kind, const Proof& proof) {
  HandshakeMessage message;
  message.kind = kind;
  message.of_receiver = proof.receiver;
  message.of_sender = proof.sender;
  message.caller = proof.key.caller;
  message.answerer = proof.key.answerer;
  message.attempt = proof.key.attempt;
  return message;
}

Status unproven() { return failure(Code::remote_error, "its process could not prove that it is the one of this job"); }

// The two proofs and the request of an exchange of descriptors.
struct Exchange {
  const Proof ours;
  const Proof theirs;
  const LocalConnectRequest& request;
};

Status give(int socket, const Exchange& exchange, std::size_t round) {
  const std::vector<int>& all = exchange.request.descriptors;
  const std::size_t from = std::min(round * kDescriptorsAtOnce, all.size());
  const std::span<const int> part(all.data() + from, std::min(kDescriptorsAtOnce, all.size() - from));
  HandshakeMessage message = message_of(HandshakeKind::descriptors, exchange.ours);
  message.descriptors = static_cast<std::uint32_t>(all.size());
  return late(send_handshake(socket, message, part, exchange.request.until), "did not receive the descriptors of this process");
}

Status take(int socket, const Exchange& exchange, std::vector<Fd>& descriptors) {
  Result<ReceivedHandshake> taken = receive_handshake(socket, HandshakeKind::descriptors, exchange.request.until);
  if (!taken.ok()) return late(taken.status(), "did not send its descriptors");
  if (!proves(taken->message, exchange.theirs)) return unproven();
  if (taken->message.kind == HandshakeKind::refusal) return reason_of(taken->message);
  if (taken->message.descriptors != exchange.request.expected)
    return failure(Code::remote_error, "its process sends %u descriptors, but %zu are expected", taken->message.descriptors,
                   exchange.request.expected);
  for (Fd& descriptor : taken->descriptors) descriptors.push_back(std::move(descriptor));
  return {};
}

// Both sides send in turn, so that few descriptors are in flight at any time.
Result<LocalConnection> share(PrivateFd socket, const Exchange& exchange, bool begins) {
  LocalConnection connection;
  const std::size_t most = std::max(exchange.request.descriptors.size(), exchange.request.expected);
  for (std::size_t round = 0; round * kDescriptorsAtOnce < most; ++round) {
    if (begins) SETO_TRY(give(socket.get(), exchange, round));
    SETO_TRY(take(socket.get(), exchange, connection.descriptors));
    if (!begins) SETO_TRY(give(socket.get(), exchange, round));
  }
  if (connection.descriptors.size() != exchange.request.expected)
    return failure(Code::remote_error, "its process sent %zu descriptors instead of %zu", connection.descriptors.size(),
                   exchange.request.expected);
  connection.socket = std::move(socket);
  return connection;
}

// The one of this process; never destroyed, for the reason in control_process.cc.
std::atomic<LocalConnector*> present_connector{nullptr};

}  // namespace

Result<LocalConnector*> LocalConnector::of_process() {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (LocalConnector* connector = present_connector.load(std::memory_order_acquire)) return connector;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (LocalConnector* connector = present_connector.load(std::memory_order_acquire)) return connector;
  SETO_ASSIGN(auto connector, create(*control));
  present_connector.store(connector.get(), std::memory_order_release);
  return connector.release();
}

Result<std::unique_ptr<LocalConnector>> LocalConnector::create(ControlThread& control) {
  std::unique_ptr<LocalConnector> connector(new LocalConnector);
  connector->self_ = {random_socket_name(), random_token()};
  connector->address_ = encode(connector->self_);
  SETO_ASSIGN(connector->listener_, LocalListener::create(control, connector->self_.socket_name, connector->self_.token));
  return connector;
}

// The context with the smaller (address, number) is the caller: both sides agree on it.
Result<PrivateFd> LocalConnector::begin_connect(const LocalConnectRequest& request) {
  if (generation_ != fork_generation()) return used_in_forked_child();
  SETO_ASSIGN(const ProcessAddress remote, decode_address(request.remote_address));
  const auto mine = std::tie(address_, request.mine);
  const auto theirs = std::tie(request.remote_address, request.theirs);
  if (mine == theirs) return failure(Code::invalid_argument, "a context was asked to connect to itself");
  if (mine > theirs) return PrivateFd();
  Result<PrivateFd> socket = connect_local(remote.socket_name, SocketKind::packets, request.until);
  if (!socket.ok()) {
    if (socket.status().code() == Code::remote_error) return failure(Code::remote_error, "%s", kPeerEnded);
    return late(socket.status(), "did not accept a connection");
  }
  SETO_TRY(check_same_user(socket->get()));
  const CallKey key{self_.token, request.mine, request.theirs, request.attempt};
  // The socket may hold a refusal although the hello could not be sent.
  const HandshakeMessage hello = message_of(HandshakeKind::hello, {remote.token, self_.token, key});
  const Status sent = send_handshake(socket->get(), hello, {}, request.until);
  if (!sent.ok() && sent.code() != Code::remote_error) return late(sent, "did not receive the hello");
  return socket;
}

Result<LocalConnection> LocalConnector::finish_connect(const LocalConnectRequest& request, Result<PrivateFd> called) {
  if (generation_ != fork_generation()) return used_in_forked_child();
  if (!called.ok()) return called.status();
  SETO_ASSIGN(const ProcessAddress remote, decode_address(request.remote_address));
  return called.value().valid() ? finish_as_caller(request, remote, std::move(called).value())
                                : finish_as_answerer(request, remote);
}

Result<LocalConnection> LocalConnector::finish_as_caller(const LocalConnectRequest& request, const ProcessAddress& remote,
                                                         PrivateFd socket) {
  const CallKey key{self_.token, request.mine, request.theirs, request.attempt};
  const Proof ours{remote.token, self_.token, key};
  const Proof theirs{self_.token, remote.token, key};
  Result<ReceivedHandshake> accepted = receive_handshake(socket.get(), HandshakeKind::accept, request.until);
  if (!accepted.ok()) return late(accepted.status(), "did not answer");
  if (!proves(accepted->message, theirs)) return unproven();
  if (accepted->message.kind == HandshakeKind::refusal) return reason_of(accepted->message);
  return share(std::move(socket), {ours, theirs, request}, false);
}

Result<LocalConnection> LocalConnector::finish_as_answerer(const LocalConnectRequest& request, const ProcessAddress& remote) {
  const CallKey key{remote.token, request.theirs, request.mine, request.attempt};
  SETO_ASSIGN(PrivateFd socket, await_caller(key, remote, request.until));
  const Proof ours{remote.token, self_.token, key};
  const Proof theirs{self_.token, remote.token, key};
  SETO_TRY(late(send_handshake(socket.get(), message_of(HandshakeKind::accept, ours), {}, request.until),
                "did not receive the acceptance"));
  return share(std::move(socket), {ours, theirs, request}, true);
}

// A process that dies or gives up before it connects leaves no socket whose end could be noticed, so it is probed at intervals.
Result<PrivateFd> LocalConnector::await_caller(const CallKey& key, const ProcessAddress& remote, Deadline until) {
  for (std::uint64_t patience = kFirstProbeMs;; patience = std::min(2 * patience, kProbeMs)) {
    const auto slice = std::min<std::uint64_t>(patience, static_cast<std::uint64_t>(until.remaining_ms()));
    Result<PrivateFd> socket = listener_->take(key, Deadline::after_ms(slice));
    if (socket.ok() || socket.status().code() != Code::timeout) return socket;
    if (until.passed()) return failure(Code::timeout, "its process did not connect before the deadline of the init");
    SETO_TRY(probe(key, remote));
  }
}

// Fails if no connection will come; the text says why. A probe without an answer, or one that cannot be sent, proves nothing.
Status LocalConnector::probe(const CallKey& key, const ProcessAddress& remote) const {
  Result<PrivateFd> socket = connect_local(remote.socket_name, SocketKind::packets, Deadline::after_ms(1));
  if (!socket.ok())
    return socket.status().code() == Code::remote_error ? failure(Code::remote_error, "%s", kPeerEnded) : Status();
  if (!check_same_user(socket->get()).ok()) return {};
  // In a probe the roles are swapped: the waiting side is the caller.
  const CallKey asking{self_.token, key.answerer, key.caller, key.attempt};
  const HandshakeMessage message = message_of(HandshakeKind::probe, {remote.token, self_.token, asking});
  if (!send_handshake(socket->get(), message, {}, Deadline::after_ms(0)).ok()) return {};
  const auto answer = receive_handshake(socket->get(), HandshakeKind::refusal, Deadline::after_ms(kProbeMs));
  if (!answer.ok() || !proves(answer.value().message, {self_.token, remote.token, asking})) return {};
  return reason_of(answer.value().message);
}

void LocalConnector::decline(AttemptId attempt, ContextId mine, const Status& reason) {
  listener_->decline(attempt, mine, {Code::aborted, std::string(reason.text())});
}

}  // namespace seto

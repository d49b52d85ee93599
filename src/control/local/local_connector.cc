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

// The first time it asks: a peer that is as fast has called by then.
constexpr std::uint64_t kFirstProbeMs = 25;

constexpr const char* kPeerGone = "its process has ended";

// The texts of lower layers do not know what was being done.
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

// What each end of a proven connection gives and expects.
struct Exchange {
  const Proof ours;
  const Proof theirs;
  const Appointment& appointment;
};

Status give(int socket, const Exchange& exchange, std::size_t round) {
  const std::vector<int>& all = exchange.appointment.gifts;
  const std::size_t from = std::min(round * kGiftsAtOnce, all.size());
  const std::span<const int> part(all.data() + from, std::min(kGiftsAtOnce, all.size() - from));
  HandshakeMessage message = message_of(HandshakeKind::gifts, exchange.ours);
  message.gifts = static_cast<std::uint32_t>(all.size());
  return late(send_handshake(socket, message, part, exchange.appointment.until), "did not take what we share");
}

Status take(int socket, const Exchange& exchange, std::vector<Fd>& gifts) {
  Result<ReceivedHandshake> taken = receive_handshake(socket, HandshakeKind::gifts, exchange.appointment.until);
  if (!taken.ok()) return late(taken.status(), "did not give what it shares");
  if (!proves(taken->message, exchange.theirs)) return unproven();
  if (taken->message.kind == HandshakeKind::refusal) return reason_of(taken->message);
  if (taken->message.gifts != exchange.appointment.expected)
    return failure(Code::remote_error, "its process shares %u descriptors where %zu are due", taken->message.gifts,
                   exchange.appointment.expected);
  for (Fd& gift : taken->gifts) gifts.push_back(std::move(gift));
  return {};
}

// In turn, so that few are under way at any time.
Result<Meeting> share(PrivateFd socket, const Exchange& exchange, bool begins) {
  Meeting meeting;
  const std::size_t most = std::max(exchange.appointment.gifts.size(), exchange.appointment.expected);
  for (std::size_t round = 0; round * kGiftsAtOnce < most; ++round) {
    if (begins) SETO_TRY(give(socket.get(), exchange, round));
    SETO_TRY(take(socket.get(), exchange, meeting.gifts));
    if (!begins) SETO_TRY(give(socket.get(), exchange, round));
  }
  if (meeting.gifts.size() != exchange.appointment.expected)
    return failure(Code::remote_error, "its process gave %zu descriptors instead of %zu", meeting.gifts.size(),
                   exchange.appointment.expected);
  meeting.socket = std::move(socket);
  return meeting;
}

// Of this process, as control_process.cc; leaked for the same reason.
std::atomic<MeetingPoint*> present_point{nullptr};

}  // namespace

Result<MeetingPoint*> MeetingPoint::of_process() {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (MeetingPoint* point = present_point.load(std::memory_order_acquire)) return point;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (MeetingPoint* point = present_point.load(std::memory_order_acquire)) return point;
  SETO_ASSIGN(auto point, create(*control));
  present_point.store(point.get(), std::memory_order_release);
  return point.release();
}

Result<std::unique_ptr<MeetingPoint>> MeetingPoint::create(ControlThread& control) {
  std::unique_ptr<MeetingPoint> point(new MeetingPoint);
  point->self_ = {random_socket_name(), random_token()};
  point->address_ = encode(point->self_);
  SETO_ASSIGN(point->reception_, Reception::create(control, point->self_.socket_name, point->self_.token));
  return point;
}

// The smaller of the two contexts calls, by address and number: both sides see it alike.
Result<PrivateFd> MeetingPoint::call(const Appointment& appointment) {
  if (generation_ != fork_generation()) return used_in_forked_child();
  SETO_ASSIGN(const ProcessAddress remote, decode_address(appointment.remote_address));
  const auto mine = std::tie(address_, appointment.mine);
  const auto theirs = std::tie(appointment.remote_address, appointment.theirs);
  if (mine == theirs) return failure(Code::invalid_argument, "a context was to meet itself");
  if (mine > theirs) return PrivateFd();
  Result<PrivateFd> socket = connect_local(remote.socket_name, SocketKind::packets, appointment.until);
  if (!socket.ok()) {
    if (socket.status().code() == Code::remote_error) return failure(Code::remote_error, "%s", kPeerGone);
    return late(socket.status(), "did not accept a connection");
  }
  SETO_TRY(check_same_user(socket->get()));
  const CallKey key{self_.token, appointment.mine, appointment.theirs, appointment.attempt};
  // A refusal may lie in the socket although our hello was not taken.
  const HandshakeMessage hello = message_of(HandshakeKind::hello, {remote.token, self_.token, key});
  const Status sent = send_handshake(socket->get(), hello, {}, appointment.until);
  if (!sent.ok() && sent.code() != Code::remote_error) return late(sent, "did not hear the hello");
  return socket;
}

Result<Meeting> MeetingPoint::meet(const Appointment& appointment, Result<PrivateFd> called) {
  if (generation_ != fork_generation()) return used_in_forked_child();
  if (!called.ok()) return called.status();
  SETO_ASSIGN(const ProcessAddress remote, decode_address(appointment.remote_address));
  return called.value().valid() ? be_answered(appointment, remote, std::move(called).value()) : answer(appointment, remote);
}

Result<Meeting> MeetingPoint::be_answered(const Appointment& appointment, const ProcessAddress& remote, PrivateFd socket) {
  const CallKey key{self_.token, appointment.mine, appointment.theirs, appointment.attempt};
  const Proof ours{remote.token, self_.token, key};
  const Proof theirs{self_.token, remote.token, key};
  Result<ReceivedHandshake> welcome = receive_handshake(socket.get(), HandshakeKind::welcome, appointment.until);
  if (!welcome.ok()) return late(welcome.status(), "did not answer");
  if (!proves(welcome->message, theirs)) return unproven();
  if (welcome->message.kind == HandshakeKind::refusal) return reason_of(welcome->message);
  return share(std::move(socket), {ours, theirs, appointment}, false);
}

Result<Meeting> MeetingPoint::answer(const Appointment& appointment, const ProcessAddress& remote) {
  const CallKey key{remote.token, appointment.theirs, appointment.mine, appointment.attempt};
  SETO_ASSIGN(PrivateFd socket, await_caller(key, remote, appointment.until));
  const Proof ours{remote.token, self_.token, key};
  const Proof theirs{self_.token, remote.token, key};
  SETO_TRY(late(send_handshake(socket.get(), message_of(HandshakeKind::welcome, ours), {}, appointment.until),
                "did not hear the welcome"));
  return share(std::move(socket), {ours, theirs, appointment}, true);
}

// A process that died, or gave up, before it calls leaves nothing that hangs up: so it is asked now and then.
Result<PrivateFd> MeetingPoint::await_caller(const CallKey& key, const ProcessAddress& remote, Deadline until) {
  for (std::uint64_t patience = kFirstProbeMs;; patience = std::min(2 * patience, kProbeMs)) {
    const auto slice = std::min<std::uint64_t>(patience, static_cast<std::uint64_t>(until.remaining_ms()));
    Result<PrivateFd> socket = reception_->take(key, Deadline::after_ms(slice));
    if (socket.ok() || socket.status().code() != Code::timeout) return socket;
    if (until.passed()) return failure(Code::timeout, "its process did not call before the deadline of the init");
    SETO_TRY(ask(key, remote));
  }
}

// Why no call will come, if so. Silence is no answer, and neither is what only happened to the question.
Status MeetingPoint::ask(const CallKey& key, const ProcessAddress& remote) const {
  Result<PrivateFd> socket = connect_local(remote.socket_name, SocketKind::packets, Deadline::after_ms(1));
  if (!socket.ok()) return socket.status().code() == Code::remote_error ? failure(Code::remote_error, "%s", kPeerGone) : Status();
  if (!check_same_user(socket->get()).ok()) return {};
  // In the question it is the asker who calls.
  const CallKey asking{self_.token, key.answerer, key.caller, key.attempt};
  const HandshakeMessage question = message_of(HandshakeKind::question, {remote.token, self_.token, asking});
  if (!send_handshake(socket->get(), question, {}, Deadline::after_ms(0)).ok()) return {};
  const auto answer = receive_handshake(socket->get(), HandshakeKind::refusal, Deadline::after_ms(kProbeMs));
  if (!answer.ok() || !proves(answer.value().message, {self_.token, remote.token, asking})) return {};
  return reason_of(answer.value().message);
}

void MeetingPoint::decline(AttemptId attempt, ContextId mine, const Status& reason) {
  reception_->decline(attempt, mine, {Code::aborted, std::string(reason.text())});
}

}  // namespace seto

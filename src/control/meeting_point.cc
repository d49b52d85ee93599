#include "src/control/meeting_point.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

// How often one that waits for a call asks whether the caller's process still lives.
constexpr std::uint64_t kProbeMs = 200;

constexpr const char* kPeerGone = "its process has ended";

// The texts of lower layers do not know what was being done.
Status late(const Status& status, const char* what) {
  if (status.code() != Code::timeout) return status;
  return failure(Code::timeout, "its process %s before the deadline of the init", what);
}

bool proves(const HandshakeMessage& message, const Token& receiver, const Token& sender, const HandshakeMessage& expected) {
  return equal(message.of_receiver, receiver) && equal(message.of_sender, sender) && message.caller == expected.caller &&
         message.answerer == expected.answerer;
}

Status unproven() { return failure(Code::remote_error, "its process could not prove that it is the one of this job"); }

Status no_memory() { return failure(Code::remote_error, "its process sent no memory"); }

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
Result<Meeting> MeetingPoint::meet(const Appointment& appointment) {
  if (generation_ != fork_generation()) {
    return failure(Code::invalid_usage,
                   "this process was forked from one that uses the library: only the parent may go on using it");
  }
  SETO_ASSIGN(const ProcessAddress remote, decode_address(appointment.remote_address));
  const auto mine = std::tie(address_, appointment.mine);
  const auto theirs = std::tie(appointment.remote_address, appointment.theirs);
  if (mine == theirs) return failure(Code::invalid_argument, "a context was to meet itself");
  return mine < theirs ? call(appointment, remote) : answer(appointment, remote);
}

Result<Meeting> MeetingPoint::call(const Appointment& appointment, const ProcessAddress& remote) {
  Result<PrivateFd> socket = connect_local(remote.socket_name, SocketKind::packets, appointment.until);
  if (!socket.ok()) {
    if (socket.status().code() == Code::remote_error) return failure(Code::remote_error, "%s", kPeerGone);
    return late(socket.status(), "did not accept a connection");
  }
  SETO_TRY(check_same_user(socket->get()));
  HandshakeMessage message;
  message.kind = HandshakeKind::hello;
  message.of_receiver = remote.token;
  message.of_sender = self_.token;
  message.caller = appointment.mine;
  message.answerer = appointment.theirs;
  // A refusal may lie in the socket although our hello was not taken.
  const Status sent = send_handshake(socket->get(), message, -1, appointment.until);
  if (!sent.ok() && sent.code() != Code::remote_error) return late(sent, "did not hear the hello");
  Result<ReceivedHandshake> welcome = receive_handshake(socket->get(), HandshakeKind::welcome, appointment.until);
  if (!welcome.ok()) return late(welcome.status(), "did not answer");
  if (!proves(welcome->message, self_.token, remote.token, message)) return unproven();
  if (!welcome->fd.valid()) return no_memory();
  message.kind = HandshakeKind::memory;
  if (Status given = send_handshake(socket->get(), message, appointment.memory, appointment.until); !given.ok()) {
    return late(given, "did not take our memory");
  }
  return Meeting{std::move(socket).value(), std::move(welcome->fd)};
}

Result<Meeting> MeetingPoint::answer(const Appointment& appointment, const ProcessAddress& remote) {
  const CallKey key{remote.token, appointment.theirs, appointment.mine};
  SETO_ASSIGN(PrivateFd socket, await_caller(key, remote.socket_name, appointment.until));
  HandshakeMessage message;
  message.kind = HandshakeKind::welcome;
  message.of_receiver = remote.token;
  message.of_sender = self_.token;
  message.caller = appointment.theirs;
  message.answerer = appointment.mine;
  if (Status given = send_handshake(socket.get(), message, appointment.memory, appointment.until); !given.ok()) {
    return late(given, "did not take our memory");
  }
  Result<ReceivedHandshake> memory = receive_handshake(socket.get(), HandshakeKind::memory, appointment.until);
  if (!memory.ok()) return late(memory.status(), "did not give its memory");
  if (!proves(memory->message, self_.token, remote.token, message)) return unproven();
  if (!memory->fd.valid()) return no_memory();
  return Meeting{std::move(socket), std::move(memory->fd)};
}

// A process that dies before it calls leaves nothing that hangs up: so its listener is tried now and then.
Result<PrivateFd> MeetingPoint::await_caller(const CallKey& key, const std::string& socket_name, Deadline until) {
  while (true) {
    const auto slice = std::min<std::uint64_t>(kProbeMs, static_cast<std::uint64_t>(until.remaining_ms()));
    Result<PrivateFd> socket = reception_->take(key, Deadline::after_ms(slice));
    if (socket.ok() || socket.status().code() != Code::timeout) return socket;
    if (until.passed()) return failure(Code::timeout, "its process did not call before the deadline of the init");
    const Result<PrivateFd> probe = connect_local(socket_name, SocketKind::packets, Deadline::after_ms(1));
    if (!probe.ok() && probe.status().code() == Code::remote_error) return failure(Code::remote_error, "%s", kPeerGone);
  }
}

}  // namespace seto

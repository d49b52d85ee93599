// How a link reads.

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>

#include "src/base/clock.h"
#include "transports/tcp/link.h"

namespace seto::tcp {
namespace {

// What one pass reads of a socket before others, and the engine, get their turn.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// A frame of which so much is still to come is worth a call of its own.
constexpr std::size_t kLongFrame = std::size_t{32} << 10;
// Communicators that a peer may open on one link.
constexpr std::size_t kMostOpened = 65'536;
// Numbers beyond a gap, of a peer that sends what nobody awaits.
constexpr std::size_t kMostBeyond = 65'536;
// A peer closes all sockets at once; their ends may come one after another.
constexpr std::uint64_t kPartlyEndedNs = 2'000'000'000;

Status peer_closed() { return failure(Code::remote_error, "its connection was closed"); }

ssize_t read_parts(int fd, std::span<const iovec> parts) {
  if (parts.size() == 1) return recv(fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return recvmsg(fd, &message, MSG_DONTWAIT);
}

}  // namespace

void Link::turn_away(const std::byte* memory, std::size_t size) {
  const std::less<> before;
  for (const auto& socket : sockets_)
    if (socket->in_payload && socket->at != nullptr && !before(socket->at, memory) && before(socket->at, memory + size))
      socket->at = nullptr;
}

bool Link::receive() {
  bool moved = false;
  for (const auto& socket : sockets_) {
    if (broken()) break;
    if (!socket->ended) moved = receive(*socket) || moved;
  }
  return moved;
}

// One that has ended says nothing of what the others still bring.
bool Link::receive(Socket& socket) {
  const Dry dry = read(socket);
  if (!dry.failure.ok()) {
    lose(dry.failure);
    return true;
  }
  if (dry.ended) {
    socket.ended = true;
    if (std::all_of(sockets_.begin(), sockets_.end(), [](const auto& each) { return each->ended; }))
      break_with(peer_closed());
    else if (partly_ended_since_ == 0)
      partly_ended_since_ = monotonic_ns();
  }
  return dry.moved || dry.ended;
}

void Link::lose(const Status& reason) {
  for (const auto& socket : sockets_)
    while (!socket->ended && !broken()) {
      const Dry dry = read(*socket);
      if (!dry.moved || dry.ended || !dry.failure.ok()) break;
    }
  break_with(reason);
}

bool Link::look_after() {
  if (broken()) return false;
  if (given_up_.load(std::memory_order_acquire))
    lose(failure(Code::remote_error, "its process is lost"));
  else if (partly_ended_since_ != 0 && monotonic_ns() - partly_ended_since_ > kPartlyEndedNs)
    lose(peer_closed());
  return broken();
}

// Into the message that is under way, and behind it into the staging area, where the next headers will be: one call for both.
Link::Dry Link::read(Socket& socket) {
  Dry dry;
  std::byte dropped[4096];
  for (std::size_t total = 0; total < kReadAtOnce;) {
    iovec parts[2];
    std::size_t count = 0;
    std::size_t direct = 0;
    if (socket.in_payload) {
      direct = socket.frame.length - socket.got;
      if (socket.at == nullptr) direct = std::min(direct, sizeof dropped);
      parts[count++] = {socket.at == nullptr ? dropped : socket.at + socket.got, direct};
    }
    std::size_t asked = direct;
    if (!socket.in_payload || socket.got + direct == socket.frame.length) {
      // Behind a long frame comes another, as a rule, whose bytes belong where they are wanted: of it the header alone.
      const std::size_t room = direct >= kLongFrame ? sizeof(Frame) : kStaging - socket.end;
      parts[count++] = {socket.staging.data() + socket.end, room};
      asked += room;
    }
    const ssize_t got = read_parts(socket.fd.get(), {parts, count});
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return dry;
    if (got < 0) dry.failure = connection_failure(errno);
    dry.ended = got == 0;
    if (got <= 0) return dry;
    dry.moved = true;
    const auto bytes = static_cast<std::size_t>(got);
    total += bytes;
    dry.failure = take_in(socket, std::min(direct, bytes), bytes);
    if (!dry.failure.ok() || bytes < asked) return dry;
  }
  return dry;
}

// So many of the bytes that came are of the message that is under way.
Status Link::take_in(Socket& socket, std::size_t to_message, std::size_t bytes) {
  socket.got += static_cast<std::uint32_t>(to_message);
  socket.end += bytes - to_message;
  if (socket.in_payload && socket.got == socket.frame.length) SETO_TRY(end_frame(socket));
  return digest_staging(socket);
}

// Frames, as far as they are there.
Status Link::digest_staging(Socket& socket) {
  while (!socket.in_payload && socket.end - socket.begin >= sizeof(Frame)) {
    std::memcpy(&socket.frame, socket.staging.data() + socket.begin, sizeof(Frame));
    socket.begin += sizeof(Frame);
    SETO_TRY(begin_frame(socket));
    const std::size_t there = std::min<std::size_t>(socket.end - socket.begin, socket.frame.length);
    if (socket.at != nullptr && there > 0) std::memcpy(socket.at, socket.staging.data() + socket.begin, there);
    socket.begin += there;
    socket.got = static_cast<std::uint32_t>(there);
    if (there < socket.frame.length) break;
    SETO_TRY(end_frame(socket));
  }
  if (socket.begin > 0) {
    std::memmove(socket.staging.data(), socket.staging.data() + socket.begin, socket.end - socket.begin);
    socket.end -= socket.begin;
    socket.begin = 0;
  }
  return {};
}

Status Link::begin_frame(Socket& socket) {
  const Frame& frame = socket.frame;
  if (!frame.plausible()) return garbage("no header");
  socket.in_payload = true;
  socket.at = nullptr;
  socket.got = 0;
  SETO_TRY(number(frame.sequence));
  if (frame.kind() == FrameKind::open) {
    if (frame.length != Secret::kSize) return garbage("an opening of another size");
    socket.at = socket.opening.data();
    return {};
  }
  if (opened_.count(frame.circle) == 0) return garbage("frames of a communicator that was not opened");
  if (Circle* const circle = circle_of(frame.circle)) {
    SETO_ASSIGN(socket.at, circle->sink->place(circle->member, frame));
  }
  return {};
}

Status Link::end_frame(Socket& socket) {
  socket.in_payload = false;
  const Frame& frame = socket.frame;
  if (frame.kind() == FrameKind::open) return hear_opening(socket);
  if (Circle* const circle = circle_of(frame.circle)) return circle->sink->arrived(circle->member, frame, socket.at);
  return {};
}

Status Link::hear_opening(const Socket& socket) {
  const Frame& frame = socket.frame;
  const std::string_view shown(reinterpret_cast<const char*>(socket.opening.data()), socket.opening.size());
  if (!equal(shown, proof_of(frame.circle, frame.digest).bytes())) return garbage("an opening that proves nothing");
  if (opened_.size() >= kMostOpened) std::erase_if(opened_, [this](std::uint64_t circle) { return circles_.count(circle) == 0; });
  opened_.insert(frame.circle);
  return {};
}

// Of several sockets frames overtake each other; what is beyond a gap is remembered until the gap is filled.
Status Link::number(std::uint64_t sequence) {
  if (sequence <= heard_ || beyond_.count(sequence) > 0) return garbage("a sequence number twice");
  if (sequence != heard_ + 1) {
    if (sockets_.size() == 1 || beyond_.size() >= kMostBeyond) return garbage("a sequence number is left out");
    beyond_.insert(sequence);
    return {};
  }
  ++heard_;
  while (!beyond_.empty() && *beyond_.begin() == heard_ + 1) {
    ++heard_;
    beyond_.erase(beyond_.begin());
  }
  return {};
}

}  // namespace seto::tcp

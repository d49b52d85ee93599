#include "transports/tcp/link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "src/base/clock.h"

namespace seto::tcp {
namespace {

// What one pass reads of a socket before others, and the engine, get their turn.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// A frame of which so much is still to come is worth a call of its own.
constexpr std::size_t kLongFrame = std::size_t{32} << 10;
// Communicators that a peer may open on one link.
constexpr std::size_t kMostOpened = 65'536;

// Urgent frames, and numbers beyond a gap, of a peer that does not read, or sends what nobody awaits.
constexpr std::size_t kMostUrgent = 65'536;
constexpr std::size_t kMostBeyond = 65'536;
// A peer closes all sockets at once; their ends may come one after another.
constexpr std::uint64_t kPartlyEndedNs = 2'000'000'000;

// In place of memory that its owner took back.
alignas(64) constexpr std::byte kZeros[kFrameLimit] = {};

Status peer_closed() { return failure(Code::remote_error, "its connection was closed"); }

Status connection_failure(int error) { return failure(Code::remote_error, "its connection broke: %s", std::strerror(error)); }

Secret proof_of(const Secret& session, std::uint64_t circle, std::uint32_t member) {
  std::string context(reinterpret_cast<const char*>(&circle), sizeof circle);
  context.append(reinterpret_cast<const char*>(&member), sizeof member);
  return session.derive("open communicator", context);
}

// The proof of an opening travels from here.
class ProofSource final : public Source {
 public:
  explicit ProofSource(Secret proof) : proof_(std::move(proof)) {}
  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(proof_.bytes().data()); }

 private:
  Secret proof_;
};

}  // namespace

Link::Link(Setup setup) : session_(std::move(setup.session)) {
  for (PrivateFd& fd : setup.sockets) {
    sockets_.push_back(std::make_unique<Socket>());
    sockets_.back()->fd = std::move(fd);
  }
}

Link::~Link() = default;

int Link::descriptor(std::size_t socket) const { return sockets_[socket]->fd.get(); }

bool Link::wants_to_write(std::size_t socket) const { return sockets_[socket]->full && !broken(); }

void Link::enter(std::uint64_t circle, Sink& sink, std::uint32_t member, std::uint32_t own) {
  circles_[circle] = {&sink, member};
  auto proof = std::make_shared<ProofSource>(proof_of(session_, circle, own));
  Frame frame;
  frame.set_kind(FrameKind::open);
  frame.circle = circle;
  frame.digest = own;
  frame.length = Secret::kSize;
  const std::byte* const payload = proof->data();
  queue({frame, payload, std::move(proof), nullptr});
}

// An opening is the link's own, whoever else leaves.
void Link::leave(std::uint64_t circle) {
  circles_.erase(circle);
  for (const auto& socket : sockets_)
    if (socket->in_payload && socket->frame.circle == circle && socket->frame.kind() != FrameKind::open) socket->at = nullptr;
}

Link::Circle* Link::circle_of(std::uint64_t key) {
  const auto found = circles_.find(key);
  return found == circles_.end() ? nullptr : &found->second;
}

// ---- out ----

void Link::queue(Outgoing outgoing) {
  if (broken()) return;
  outgoing.count();
  waiting_.push(std::move(outgoing));
}

void Link::queue_urgent(const Frame& frame) {
  if (broken()) return;
  if (urgent_.size() >= kMostUrgent) return break_with(failure(Code::remote_error, "it reads nothing of its connection"));
  urgent_.push({frame, nullptr, nullptr, nullptr});
}

void Link::recall(const Unwritten* unwritten) {
  waiting_.drop_if([&](Outgoing& outgoing) {
    if (outgoing.unwritten != unwritten) return false;
    outgoing.done();
    return true;
  });
  for (const auto& socket : sockets_)
    for (std::size_t i = 0; i < socket->taken; ++i) {
      Outgoing& outgoing = socket->batch[i];
      if (outgoing.unwritten != unwritten) continue;
      outgoing.payload = kZeros;
      outgoing.done();
    }
}

// Where there are several sockets each takes little at a time, so that what a slow one holds is little.
void Link::fill(Socket& socket) {
  const std::size_t most = sockets_.size() == 1 ? kBatch : 2;
  while (socket.taken < most && (!urgent_.empty() || !waiting_.empty())) {
    Outgoing& next = socket.batch[socket.taken++];
    next = urgent_.empty() ? waiting_.pop() : urgent_.pop();
    next.frame.sequence = ++sent_;
    next.frame.acknowledged = heard_;
    ++under_way_;
  }
}

bool Link::flush(Socket& socket) {
  bool moved = false;
  for (;;) {
    fill(socket);
    if (socket.taken == 0 || broken()) return moved;
    iovec parts[2 * kBatch];
    std::size_t count = 0;
    std::size_t skip = socket.written;
    std::size_t wanted = 0;
    const auto add = [&](const void* data, std::size_t size) {
      if (skip >= size) {
        skip -= size;
        return;
      }
      parts[count++] = {static_cast<char*>(const_cast<void*>(data)) + skip, size - skip};
      wanted += size - skip;
      skip = 0;
    };
    for (std::size_t i = 0; i < socket.taken; ++i) {
      add(&socket.batch[i].frame, sizeof(Frame));
      if (socket.batch[i].frame.length > 0) add(socket.batch[i].payload, socket.batch[i].frame.length);
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket.fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    socket.full = sent < 0 ? (errno == EAGAIN || errno == ENOBUFS) : static_cast<std::size_t>(sent) < wanted;
    if (sent < 0) {
      if (!socket.full) lose(connection_failure(errno));
      return moved;
    }
    moved = true;
    wrote(socket, static_cast<std::size_t>(sent));
    if (socket.full) return moved;
  }
}

void Link::wrote(Socket& socket, std::size_t bytes) {
  socket.written += bytes;
  std::size_t gone = 0;
  while (gone < socket.taken && socket.written >= sizeof(Frame) + socket.batch[gone].frame.length) {
    Outgoing& done = socket.batch[gone++];
    socket.written -= sizeof(Frame) + done.frame.length;
    done.done();
    done = Outgoing{};
    --under_way_;
  }
  std::move(socket.batch.begin() + static_cast<std::ptrdiff_t>(gone),
            socket.batch.begin() + static_cast<std::ptrdiff_t>(socket.taken), socket.batch.begin());
  socket.taken -= gone;
}

bool Link::flush() {
  if (broken() || !unsent()) return false;
  bool moved = false;
  for (const auto& socket : sockets_) moved = flush(*socket) || moved;
  return moved;
}

bool Link::delivered() const {
  if (broken()) return true;
  if (unsent()) return false;
  return std::all_of(sockets_.begin(), sockets_.end(), [](const auto& socket) {
    int unacknowledged = 0;
    return ioctl(socket->fd.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
  });
}

// ---- in ----

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
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t got = recvmsg(socket.fd.get(), &message, MSG_DONTWAIT);
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
  if (!equal(shown, proof_of(session_, frame.circle, frame.digest).bytes())) return garbage("an opening that proves nothing");
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

// ---- the end ----

void Link::break_with(const Status& reason) {
  {
    const std::lock_guard lock(why_mutex_);
    if (!why_.ok()) return;
    why_ = reason;
  }
  broken_since_.store(monotonic_ns(), std::memory_order_release);
  broken_.store(true, std::memory_order_release);
  // Nobody waits for memory whose frames will never be written.
  const auto forget = [](Outgoing& outgoing) {
    outgoing.done();
    return true;
  };
  waiting_.drop_if(forget);
  urgent_.drop_if(forget);
  for (const auto& socket : sockets_) {
    for (std::size_t i = 0; i < socket->taken; ++i) {
      forget(socket->batch[i]);
      socket->batch[i] = Outgoing{};
    }
    socket->taken = 0;
    // The peer is not left to believe in a link that carries nothing: both ends would else judge it differently.
    (void)shutdown(socket->fd.get(), SHUT_RDWR);
  }
  under_way_ = 0;
}

Status Link::why() const {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

}  // namespace seto::tcp

#include "transports/tcp/link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "src/base/clock.h"

namespace seto::tcp {
namespace {

// What one pass reads of a socket before others, and the engine, get their turn.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// Communicators that a peer may open on one link.
constexpr std::size_t kMostOpened = 65'536;

// In place of memory that its owner took back.
alignas(64) constexpr std::byte kZeros[kFrameLimit] = {};

Status peer_closed() { return failure(Code::remote_error, "its connection was closed"); }

Status connection_failure(int error) { return failure(Code::remote_error, "its connection broke: %s", std::strerror(error)); }

Status garbage(const char* what) {
  return failure(Code::remote_error, "what came over its connection is garbage (%s): the connection is given up", what);
}

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
  flush();
}

void Link::leave(std::uint64_t circle) {
  circles_.erase(circle);
  for (const auto& socket : sockets_)
    if (socket->in_payload && socket->frame.circle == circle) socket->at = nullptr;
}

Link::Circle* Link::circle_of(std::uint64_t key) {
  const auto found = circles_.find(key);
  return found == circles_.end() ? nullptr : &found->second;
}

// ---- out ----

void Link::recall(const std::uint32_t* unwritten) {
  waiting_.drop_if([&](Outgoing& outgoing) {
    if (outgoing.unwritten != unwritten) return false;
    --*outgoing.unwritten;
    return true;
  });
  for (const auto& socket : sockets_)
    for (std::size_t i = 0; i < socket->taken; ++i) {
      Outgoing& outgoing = socket->batch[i];
      if (outgoing.unwritten != unwritten) continue;
      outgoing.payload = kZeros;
      --*outgoing.unwritten;
      outgoing.unwritten = nullptr;
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
      if (!socket.full) break_with(connection_failure(errno));
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
    if (done.unwritten != nullptr) --*done.unwritten;
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

bool Link::receive() {
  bool moved = false;
  for (const auto& socket : sockets_) {
    if (broken()) break;
    moved = receive(*socket) || moved;
  }
  return moved;
}

// Into the message that is under way, and behind it into the staging area, where the next headers will be: one call for both.
bool Link::receive(Socket& socket) {
  bool moved = false;
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
    const bool rest = socket.in_payload && socket.got + direct == socket.frame.length;
    if (!socket.in_payload || rest) parts[count++] = {socket.staging.data() + socket.end, kStaging - socket.end};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t got = recvmsg(socket.fd.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return moved;
    if (got <= 0) {
      break_with(got == 0 ? peer_closed() : connection_failure(errno));
      return true;
    }
    moved = true;
    auto bytes = static_cast<std::size_t>(got);
    total += bytes;
    std::size_t asked = direct;
    for (std::size_t i = direct > 0 ? 1 : 0; i < count; ++i) asked += parts[i].iov_len;
    const bool drained = bytes < asked;
    const std::size_t to_message = std::min(direct, bytes);
    socket.got += static_cast<std::uint32_t>(to_message);
    socket.end += bytes - to_message;
    Status heard;
    if (socket.in_payload && socket.got == socket.frame.length) heard = end_frame(socket);
    if (heard.ok()) heard = digest_staging(socket);
    if (!heard.ok()) {
      break_with(heard);
      return true;
    }
    if (drained) return true;
  }
  return moved;
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
  if (seen(frame.sequence)) {
    if (sockets_.size() == 1) return garbage("a sequence number twice");
    socket.late = true;
    return {};
  }
  socket.late = false;
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
  if (socket.late) return {};
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
bool Link::seen(std::uint64_t sequence) {
  if (sequence <= heard_ || beyond_.count(sequence) > 0) return true;
  if (sequence != heard_ + 1) {
    beyond_.insert(sequence);
    return false;
  }
  ++heard_;
  while (!beyond_.empty() && *beyond_.begin() == heard_ + 1) {
    ++heard_;
    beyond_.erase(beyond_.begin());
  }
  return false;
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
    if (outgoing.unwritten != nullptr) --*outgoing.unwritten;
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
  }
  under_way_ = 0;
}

Status Link::why() const {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

}  // namespace seto::tcp

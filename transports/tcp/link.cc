#include "transports/tcp/link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "src/base/clock.h"

namespace seto::tcp {
namespace {

// Urgent frames of a peer that does not read.
constexpr std::size_t kMostUrgent = 65'536;

// The kernel looks at a list of parts for as long as it copies a kilobyte: what is short goes in one.
ssize_t write_parts(int fd, std::span<const iovec> parts, std::size_t size) {
  constexpr std::size_t kShort = 1024;
  if (size <= kShort) {
    std::array<std::byte, kShort> all;
    std::size_t at = 0;
    for (const iovec& part : parts) {
      std::memcpy(all.data() + at, part.iov_base, part.iov_len);
      at += part.iov_len;
    }
    return send(fd, all.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The proof of an opening travels from here.
class ProofSource final : public Source {
 public:
  explicit ProofSource(Secret proof) : proof_(std::move(proof)) {}
  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(proof_.bytes().data()); }

 private:
  Secret proof_;
};

// A copy of a payload whose owner wants its memory back.
class CopySource final : public Source {
 public:
  CopySource(const std::byte* from, std::size_t size) : bytes_(from, from + size) {}
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

Link::Link(Setup setup) : session_(std::move(setup.session)) {
  for (PrivateFd& fd : setup.sockets) {
    sockets_.push_back(std::make_unique<Socket>());
    sockets_.back()->fd = std::move(fd);
  }
}

Link::~Link() = default;

Status connection_failure(int error) { return failure(Code::remote_error, "its connection broke: %s", std::strerror(error)); }

Secret Link::proof_of(std::uint64_t circle, std::uint32_t member) const {
  std::string context(reinterpret_cast<const char*>(&circle), sizeof circle);
  context.append(reinterpret_cast<const char*>(&member), sizeof member);
  return session_.derive("open communicator", context);
}

int Link::descriptor(std::size_t socket) const { return sockets_[socket]->fd.get(); }

bool Link::wants_to_write(std::size_t socket) const { return sockets_[socket]->full && !broken(); }

void Link::enter(std::uint64_t circle, Sink& sink, std::uint32_t member, std::uint32_t own) {
  circles_[circle] = {&sink, member};
  auto proof = std::make_shared<ProofSource>(proof_of(circle, own));
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
      take_back(outgoing, i == 0 && socket->written > 0);
    }
}

// Its number is given: a frame that is not begun goes out without its message, and that is never whole. One that is begun goes on
// with what the memory holds now, for its receiver cannot tell.
void Link::take_back(Outgoing& outgoing, bool begun) {
  if (begun) {
    auto copy = std::make_shared<CopySource>(outgoing.payload, outgoing.frame.length);
    outgoing.payload = copy->data();
    outgoing.source = std::move(copy);
  } else {
    Frame& frame = outgoing.frame;
    frame.set_kind(FrameKind::progress);
    frame.length = frame.offset = frame.size = 0;
    frame.flags = 0;
    outgoing.payload = nullptr;
  }
  outgoing.done();
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
    const ssize_t sent = write_parts(socket.fd.get(), {parts, count}, wanted);
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

#include "transports/tcp/link/path_pipe.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "src/base/clock.h"
#include "src/net/tcp_socket.h"

namespace seto::tcp {
namespace {

// `which`: SIOCOUTQNSD, not yet sent; SIOCOUTQ, not yet acknowledged; FIONREAD, not yet read.
std::size_t queued_bytes(int fd, unsigned long which) {
  int bytes = 0;
  return fd >= 0 && ioctl(fd, which, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace

// The kernel takes as long to process a list of parts as to copy a kilobyte: short output is sent as one part.
ssize_t PathPipe::send(std::span<const iovec> parts, std::size_t size) {
  constexpr std::size_t kShort = 1024;
  if (rail_ != nullptr) return rail_->send(parts);
  if (size > kShort || socket_.encrypted()) return socket_.send(parts);
  std::array<std::byte, kShort> all;
  std::size_t at = 0;
  for (const iovec& part : parts) {
    std::memcpy(all.data() + at, part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  return socket_.send({reinterpret_cast<const char*>(all.data()), size});
}

std::size_t PathPipe::unsent() const { return queued_bytes(descriptor(), SIOCOUTQNSD); }

std::size_t PathPipe::in_flight() const { return queued_bytes(descriptor(), SIOCOUTQ); }

// A rail holds less.
std::size_t PathPipe::unread() const { return rail_ != nullptr ? std::size_t{1} << 20 : queued_bytes(descriptor(), FIONREAD); }

bool PathPipe::delivered() { return rail_ != nullptr ? rail_->delivered() : in_flight() == 0; }

// A rail never stands still: it moves, or its medium breaks it.
TcpAcknowledged PathPipe::acknowledged() const {
  if (rail_ == nullptr) return tcp_acknowledged(descriptor()).value_or(TcpAcknowledged{});
  TcpAcknowledged moves;
  moves.bytes = monotonic_ns();
  return moves;
}

std::string PathPipe::way() const { return rail_ != nullptr ? rail_->way() : way_of(descriptor()); }

void PathPipe::outlast(std::uint64_t patience_ms) const {
  if (rail_ == nullptr) outlast_outages(descriptor(), patience_ms);
}

void PathPipe::limit_unsent(unsigned bytes) const {
  if (rail_ == nullptr) (void)setsockopt(descriptor(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void PathPipe::limit_pace(std::uint64_t bytes_per_second) const {
  if (rail_ != nullptr) return;
  (void)setsockopt(descriptor(), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof bytes_per_second);
}

void PathPipe::finish() {
  if (rail_ == nullptr) (void)shutdown(descriptor(), SHUT_WR);
}

void PathPipe::shut_down() {
  if (rail_ != nullptr) return rail_->close();
  (void)shutdown(descriptor(), SHUT_RDWR);
}

// Other threads ask the kernel about the descriptor.
void PathPipe::reset() {
  if (rail_ != nullptr) return rail_->close();
  const sockaddr none{};  // AF_UNSPEC
  (void)connect(descriptor(), &none, sizeof none);
}

void PathPipe::close() {
  rail_.reset();
  socket_.close();
}

void PathPipe::reset_and_close() {
  if (socket_.valid()) reset_at_close(true);
  close();
}

void PathPipe::reset_at_close(bool reset) const {
  const linger at_once{reset ? 1 : 0, 0};
  if (rail_ == nullptr) (void)setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

std::string way_of(int socket) {
  const Result<SocketAddress> here = local_address(socket);
  const Result<SocketAddress> there = remote_address(socket);
  return here.ok() && there.ok() ? "TCP " + host_text(here.value()) + " -> " + host_text(there.value()) : "TCP";
}

}  // namespace seto::tcp

#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/net/tcp_delivery.h"
#include "src/net/tls/secure_stream.h"
#include "transports/byte_pipe.h"

namespace seto::tcp {

// The bytes of one path of a link: over a TCP socket, or over a pipe of another medium (a rail). What only a socket has, its
// descriptor and the figures of the kernel, is absent for a rail: its medium tells by itself that it is broken. One thread at a
// time, but any thread may ask way() and delivery() of a pipe that is not replaced meanwhile.
class PathPipe final {
 public:
  PathPipe() = default;
  PathPipe(SecureStream socket) : socket_(std::move(socket)) {}         // NOLINT(google-explicit-constructor)
  PathPipe(std::unique_ptr<BytePipe> rail) : rail_(std::move(rail)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool valid() const { return rail_ != nullptr || socket_.valid(); }
  [[nodiscard]] const BytePipe* rail() const { return rail_.get(); }
  // The descriptor of the socket; -1: there is none.
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  // As BytePipe. A socket may also return 0 bytes: the peer has closed it in order.
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts) {
    if (rail_ != nullptr) return rail_->receive(parts);
    return parts.size() == 1 ? socket_.receive(parts[0].iov_base, parts[0].iov_len) : socket_.receive(parts);
  }
  // `size`: of all parts together.
  [[nodiscard]] ssize_t send(std::span<const iovec> parts, std::size_t size);
  [[nodiscard]] bool reads(const std::byte* memory, std::size_t size) { return rail_ != nullptr && rail_->reads(memory, size); }
  // As BytePipe: the bytes of a rail that were accepted, and of those the ones whose memory it reads no more.
  [[nodiscard]] std::uint64_t accepted() const { return rail_ != nullptr ? rail_->accepted() : 0; }
  [[nodiscard]] std::uint64_t released() const { return rail_ != nullptr ? rail_->released() : 0; }
  [[nodiscard]] std::optional<BytePipe::OpenPlace> open_place(std::byte* memory, std::size_t size) {
    return rail_ != nullptr ? rail_->open_place(memory, size) : std::nullopt;
  }
  void close_place(std::uint32_t name) {
    if (rail_ != nullptr) rail_->close_place(name);
  }
  [[nodiscard]] ssize_t write_in_place(std::span<const std::byte> head, std::span<const std::byte> body,
                                       BytePipe::RemotePlace place) {
    return rail_->write_in_place(head, body, place);
  }
  [[nodiscard]] std::string failure_text(int error) const {
    return rail_ != nullptr ? rail_->why() : socket_.failure_text(error);
  }

  // ---- bytes that TLS holds (SecureStream) ----
  [[nodiscard]] bool encrypted() const { return socket_.encrypted(); }
  [[nodiscard]] ssize_t receive_held(std::span<const iovec> parts) { return socket_.receive_held(parts); }
  [[nodiscard]] bool flush() { return socket_.flush(); }
  [[nodiscard]] std::size_t held() const { return socket_.unsent(); }
  [[nodiscard]] bool pending() const { return socket_.pending(); }
  [[nodiscard]] int send_error() const { return socket_.send_error(); }
  [[nodiscard]] const char* cipher() const { return socket_.cipher(); }

  // ---- bytes that the kernel has of a socket; of a rail nothing is known to wait ----
  [[nodiscard]] std::size_t unsent() const;     // not on their way yet
  [[nodiscard]] std::size_t in_flight() const;  // not acknowledged, the unsent ones included
  [[nodiscard]] std::size_t unread() const;
  // Everything is at the peer, at least in its kernel or memory.
  [[nodiscard]] bool delivered();
  [[nodiscard]] TcpAcknowledged acknowledged() const;
  [[nodiscard]] std::optional<TcpDelivery> delivery() const {
    return rail_ != nullptr ? std::nullopt : tcp_delivery(descriptor());
  }
  // "TCP 10.0.0.1 -> 10.0.0.2".
  [[nodiscard]] std::string way() const;

  void outlast(std::uint64_t patience_ms) const;
  void limit_unsent(unsigned bytes) const;
  void limit_pace(std::uint64_t bytes_per_second) const;

  // ---- the end ----
  // The peer sees an orderly end behind everything that was sent. A rail has none: it just carries nothing any more.
  void finish();
  // The same, and nothing is read any more.
  void shut_down();
  // An orderly end tells the peer that the link is closed, and a reset that the path is broken. The descriptor stays.
  void reset();
  void close();
  void reset_and_close();
  void reset_at_close(bool reset) const;

 private:
  SecureStream socket_;
  std::unique_ptr<BytePipe> rail_;
};

// "TCP 10.0.0.1 -> 10.0.0.2", for a connected socket.
[[nodiscard]] std::string way_of(int socket);

}  // namespace seto::tcp

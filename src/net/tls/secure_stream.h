#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/secret.h"
#include "src/net/tls/tls_session.h"

namespace seto {

// A connected socket whose bytes are plain or, once encrypt() was called, in TLS 1.3 (tls_session.h). Never blocks. Plain, each
// call is one system call and nothing else. One thread at a time.
//
// Two things differ from a socket, and only where it is encrypted: accepted bytes may wait here (unsent()), so its owner waits
// for room in the socket until flush() has sent them; and received bytes may wait here (pending()), which no event announces, so
// its owner reads on until EAGAIN, or asks.
class SecureStream final {
 public:
  SecureStream() = default;
  SecureStream(PrivateFd fd) : fd_(std::move(fd)) {}  // NOLINT(google-explicit-constructor): a socket is a plain stream
  SecureStream(SecureStream&&) noexcept = default;
  SecureStream& operator=(SecureStream&& other) noexcept;
  SecureStream(const SecureStream&) = delete;
  SecureStream& operator=(const SecureStream&) = delete;
  ~SecureStream() = default;

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  [[nodiscard]] bool encrypted() const { return tls_ != nullptr; }
  // Sends no further byte, and tells the peer nothing: the protocols on top say themselves whether they ended.
  void close();

  // From now on the bytes are those of TLS; bytes that the socket holds already are the peer's first ones. Both ends need the
  // same key, or certificates, and one is the caller. Continue with advance(). A caller may call start() first
  // (TlsSession::start).
  [[nodiscard]] Status encrypt(TlsSession::Role role, const TlsTrust& trust);
  // Bytes of the peer that were read from the socket before.
  void add_early(std::string bytes) { tls_->add_early(std::move(bytes)); }
  [[nodiscard]] Status start() { return tls_->start(); }
  [[nodiscard]] Result<bool> advance() { return tls_->advance(); }
  [[nodiscard]] Result<Secret> channel_binding() const { return tls_->channel_binding(); }

  // As recv() and readv(): the number of bytes; 0: closed; -1 with errno.
  [[nodiscard]] ssize_t receive(void* to, std::size_t most);
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts);
  // Only what TLS has read from the socket already; EAGAIN where that is nothing.
  [[nodiscard]] ssize_t receive_held(std::span<const iovec> parts);
  // As send() and writev(): the number of accepted bytes; -1 with errno.
  [[nodiscard]] ssize_t send(std::string_view bytes);
  [[nodiscard]] ssize_t send(std::span<const iovec> parts);
  // Sends all bytes, which the buffers have room for because little has been sent before.
  [[nodiscard]] bool send_whole(std::string_view bytes);

  [[nodiscard]] bool flush() { return tls_ == nullptr || tls_->flush(); }
  [[nodiscard]] std::size_t unsent() const { return tls_ == nullptr ? 0 : tls_->unsent(); }
  [[nodiscard]] bool ended() const { return tls_ != nullptr && tls_->ended(); }
  // The error with which TLS could not send, perhaps while it received; 0: none. After a reset that a send has reported, a socket
  // shows an end that the peer never sent.
  [[nodiscard]] int send_error() const { return tls_ == nullptr ? 0 : tls_->send_error(); }
  [[nodiscard]] bool pending() const { return tls_ != nullptr && tls_->pending(); }
  // The name of the cipher suite, or "none". It lives as long as the program.
  [[nodiscard]] const char* cipher() const { return tls_ == nullptr ? "none" : tls_->cipher(); }
  // The text of errno or, for EBADMSG, of TLS.
  [[nodiscard]] std::string failure_text(int error) const;

 private:
  PrivateFd fd_;
  std::unique_ptr<TlsSession> tls_;  // after fd_, so that it is destroyed first
};

}  // namespace seto

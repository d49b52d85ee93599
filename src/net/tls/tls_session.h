#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/secret.h"
#include "src/net/tls_identity.h"

struct ssl_st;

namespace seto {

// An end of a TLS connection relies on a key that both ends have or, with an identity, on certificates.
struct TlsTrust {
  Secret key;
  TlsIdentity* identity = nullptr;
  TlsTrust(const Secret& which, TlsIdentity* who = nullptr)  // NOLINT(google-explicit-constructor): most have a key alone
      : key(which), identity(who) {}
};

// One end of a TLS 1.3 connection over a connected, non-blocking socket, which its owner keeps open. Both ends have the same key,
// or both show a certificate that one of the other's CAs has signed. There are no tickets and no early data, and each connection
// has keys of its own (psk_dhe_ke with a key), so a key that leaks later decrypts nothing that was recorded. One thread at a
// time. In a forked child nothing may be called but the destructor, which frees nothing there.
class TlsSession final {
 public:
  enum class Role : std::uint8_t { caller, answerer };
  struct Options {
    // Records after which the sending key is replaced: AES-GCM must not protect more than about 2^24.5 full records.
    std::uint64_t records_of_key = std::uint64_t{1} << 23;
    std::time_t when = 0;  // the time at which the peer's certificate has to be valid; 0: now
  };
  // A handshake takes about 500 bytes in each direction, and one with certificates a few thousand. A peer that sends more than
  // this before it is over is cut off.
  static constexpr std::size_t kHandshakeLimit = 16'384;
  // Encrypted bytes that may wait for room in the socket before send() accepts no more.
  static constexpr std::size_t kMostUnsent = 64 << 10;

  static Result<std::unique_ptr<TlsSession>> create(int fd, Role role, const TlsTrust& trust, const Options& options);
  static Result<std::unique_ptr<TlsSession>> create(int fd, Role role, const TlsTrust& trust) {
    return create(fd, role, trust, Options());
  }
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Only the caller, at most once and before advance(): sends its first message and reads nothing, so that the answer to earlier
  // plain bytes can still be read from the socket.
  [[nodiscard]] Status start();
  // Bytes that were read from the socket before: the first ones of the peer's handshake.
  void add_early(std::string bytes) { early_ = std::move(bytes); }
  // Continues the handshake as far as the socket allows. True: it is over, and the peer has proved that it has the key, or a
  // certificate.
  [[nodiscard]] Result<bool> advance();
  // Bytes that only the two ends of this connection can derive. A proof that covers them is worth nothing in another one.
  [[nodiscard]] Result<Secret> channel_binding() const;

  // As readv(): fills the parts as far as bytes have arrived. 0: closed by the peer (or by a host on the path: the end of a
  // stream is not authenticated). -1: errno is EAGAIN, the error of the socket, or EBADMSG for bytes that the peer has
  // not sent in this place; why() has the text then.
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts);
  // The same of bytes that were read from the socket before, without reading more.
  [[nodiscard]] ssize_t receive_held(std::span<const iovec> parts);
  // The last receive() ended because the parts were full, so a further one may return bytes although no event of the socket
  // announces them.
  [[nodiscard]] bool pending() const { return !dry_; }

  // Accepts bytes, encrypts them and sends what the socket takes. Returns how many bytes it accepted; they need not be given
  // again. -1: errno is EAGAIN or the error of the socket.
  [[nodiscard]] ssize_t send(std::span<const iovec> parts);
  // Sends accepted bytes. False: some are left, and errno is EAGAIN or the error of the socket.
  [[nodiscard]] bool flush();
  // Accepted, and not handed to the kernel: wait until the socket is writable and call flush().
  [[nodiscard]] std::size_t unsent() const { return out_.size() - out_begin_; }
  // The error with which sending has failed; 0: none.
  [[nodiscard]] int send_error() const { return send_error_; }

  [[nodiscard]] const std::string& why() const { return why_; }
  // The peer has closed the connection, as a caller does that got another one, or the connection broke.
  [[nodiscard]] bool ended() const { return eof_; }
  // The name of the cipher suite, for people. It lives as long as the program.
  [[nodiscard]] const char* cipher() const;

 private:
  friend struct TlsSocket;
  TlsSession(int fd, Role role, const Secret& key, const Options& options)
      : fd_(fd), role_(role), key_(key), options_(options), generation_(fork_generation()) {}

  [[nodiscard]] Status use_key();
  [[nodiscard]] Status use_certificates(TlsIdentity& identity);
  [[nodiscard]] bool peer_is_proved() const;
  [[nodiscard]] Status fail(const char* what);
  [[nodiscard]] bool encrypt(const void* bytes, std::size_t size);
  [[nodiscard]] bool renew_key();
  [[nodiscard]] ssize_t receive_part(const iovec& part);

  const int fd_;
  const Role role_;
  const Secret key_;
  const Options options_;
  const std::uint32_t generation_;
  ssl_st* ssl_ = nullptr;
  bool certificates_ = false;  // in place of the key
  bool done_ = false;          // the handshake is over
  bool hold_input_ = false;    // start() is running
  bool dry_ = false;
  bool got_some_ = false;    // in this receive()
  bool read_short_ = false;  // in this receive() the socket had fewer bytes than there was room for
  bool eof_ = false;
  int receive_error_ = 0;
  int send_error_ = 0;
  std::size_t handshake_bytes_ = 0;
  std::string early_;
  std::uint64_t records_ = 0;  // under the present sending key
  std::string out_;            // encrypted
  std::size_t out_begin_ = 0;
  std::string why_;
};

}  // namespace seto

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/auth_handshake.h"
#include "src/net/tls/secure_stream.h"

namespace seto {

// Whether TCP connections of this socket are encrypted: never with `off`, all with `always`, else those that leave this host,
// which one within it does not: both its ends have one address, or that of loopback.
[[nodiscard]] bool encrypts(TlsMode mode, int fd);

enum class AuthProgress : std::uint8_t {
  waiting,  // for the socket
  decide,   // the answerer's owner has to set a key, or to accept or refuse
  closed,   // by the peer
  failed,   // why() has the reason
  over,     // take_stream()
};

// The common part of both ends: a socket, whose bytes are plain until the handshake has brought up TLS, if it does.
class AuthChannel {
 public:
  [[nodiscard]] int fd() const { return stream_.get(); }
  [[nodiscard]] bool wants_to_write() const { return !out_.empty() || stream_.unsent() > 0; }
  // Sends what waits. True: the kernel has all of it, or will never take it.
  bool flush();
  [[nodiscard]] const Status& why() const { return why_; }
  // Bytes of the handshake so far, in both directions, those of TLS itself not counted.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Once over. Bytes after the handshake are unread.
  [[nodiscard]] SecureStream take_stream() { return std::move(stream_); }
  void close() { stream_.close(); }

 protected:
  AuthChannel(PrivateFd fd, TlsIdentity* identity) : stream_(std::move(fd)), identity_(identity) {}
  [[nodiscard]] ssize_t read(char* to, std::size_t most);
  // True: TLS is up, and `binding` is that of the channel. False: waiting, or why() is set.
  [[nodiscard]] bool bring_up(TlsSession::Role role, const Secret& key, Secret& binding);

  SecureStream stream_;
  TlsIdentity* identity_;  // null: TLS with the key of the handshake
  std::string early_;      // received while the answerer had no key yet
  std::string out_;
  bool secure_ = false;  // TLS is up
  std::uint64_t bytes_ = 0;
  Status why_;
};

// The side that connected.
class CallerChannel final : public AuthChannel {
 public:
  CallerChannel(PrivateFd fd, const Secret& key, const Claim& claim, ChannelTerms terms);
  [[nodiscard]] AuthProgress advance();
  [[nodiscard]] const CallerHandshake& handshake() const { return handshake_; }

 private:
  const bool encrypted_;
  bool started_ = false;
  CallerHandshake handshake_;
};

// The side that accepted the connection.
class AnswererChannel final : public AuthChannel {
 public:
  AnswererChannel(PrivateFd fd, const Token& self, const TlsChoice& tls)
      : AuthChannel(std::move(fd), tls.identity), handshake_(self, {}, tls) {}
  [[nodiscard]] AuthProgress advance();
  // Stage::key_wanted, and the owner has no such key yet. Only the beginning of TLS may arrive meanwhile.
  [[nodiscard]] AuthProgress wait_for_key();
  [[nodiscard]] const AnswererHandshake& handshake() const { return handshake_; }
  // The decisions. advance() or flush() sends what follows from them.
  void set_key(const Secret& key) { handshake_.set_key(key), why_ = handshake_.misfit(), take_out(); }
  void refuse_unknown(AnswererHandshake::MissingKey missing) { handshake_.refuse_unknown(missing), take_out(); }
  void accept() { handshake_.accept(), take_out(); }
  void refuse(const Status& reason) { handshake_.refuse(reason), take_out(); }
  // Reads and drops what the peer has sent: unread bytes would turn a close into a reset, which may overtake the last bytes.
  void discard_unread() const;

 private:
  void take_out() { out_ += handshake_.take_out(); }
  AnswererHandshake handshake_;
};

}  // namespace seto

#pragma once

#include <cstdint>
#include <utility>

#include "src/base/fork.h"
#include "src/net/auth_claim.h"
#include "src/net/secret.h"
#include "src/net/tls/auth_channel.h"

namespace seto {

// The server side of a rendezvous connection until it is authenticated. It reads a few hundred bytes at most.
class IncomingHandshake final {
 public:
  explicit IncomingHandshake(PrivateFd fd, const TlsChoice& tls = {}) : channel_(std::move(fd), Token{}, tls) {}

  enum class Outcome : std::uint8_t { more, proven, gone };
  // The key that a member proves, and those hellos that named it.
  struct Lock {
    const Secret& key;
    SeenHellos& seen;
  };
  // Reads and writes without blocking. A peer that names the key of `presence` only asks whether the server runs: the server
  // proves the key to it, and the outcome is `gone`.
  [[nodiscard]] Outcome advance(const Lock& lock, const Secret* presence = nullptr);
  [[nodiscard]] bool wants_to_write() const { return channel_.wants_to_write(); }

  [[nodiscard]] int fd() const { return channel_.fd(); }
  // The peer named the right key in a hello that has not come before: it is a member.
  [[nodiscard]] bool key_known() const { return key_known_; }
  // The peer named another key.
  [[nodiscard]] bool has_other_key() const { return other_key_; }
  // The peer has no secret.
  [[nodiscard]] bool has_no_key() const { return channel_.handshake().names_no_key(); }
  // Valid once gone. Ok if the peer only closed the connection, as a probe does, or a member that was connected faster at another
  // address.
  [[nodiscard]] const Status& reason() const { return reason_; }
  // Valid once proven.
  [[nodiscard]] const Claim& claim() const { return channel_.handshake().claim(); }
  [[nodiscard]] SecureStream take_stream() { return channel_.take_stream(); }
  // Bytes so far, in both directions.
  [[nodiscard]] std::uint64_t bytes() const { return channel_.bytes(); }

 private:
  // Returns false if the peer uses another key.
  [[nodiscard]] bool choose_key(const Lock& lock, const Secret* presence);

  AnswererChannel channel_;
  bool key_known_ = false;
  bool presence_only_ = false;
  bool other_key_ = false;
  Status reason_;
};

}  // namespace seto

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/fork.h"
#include "src/net/auth_claim.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// The server side of a rendezvous connection until it is authenticated. It reads a few hundred bytes at most.
class IncomingHandshake final {
 public:
  explicit IncomingHandshake(PrivateFd fd) : fd_(std::move(fd)) {}

  enum class Outcome : std::uint8_t { more, proven, gone };
  // The key that a member proves, and those hellos that named it.
  struct Lock {
    const Secret& key;
    SeenHellos& seen;
  };
  // Reads and writes without blocking. A peer that names the key of `presence` only asks whether the server runs: the server
  // proves the key to it, and the outcome is `gone`.
  [[nodiscard]] Outcome advance(const Lock& lock, const Secret* presence = nullptr);
  [[nodiscard]] bool wants_to_write() const { return !out_.empty(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The peer named the right key in a hello that has not come before: it is a member.
  [[nodiscard]] bool key_known() const { return key_known_; }
  // The peer named another key.
  [[nodiscard]] bool has_other_key() const { return other_key_; }
  // The peer has no secret.
  [[nodiscard]] bool has_no_key() const { return handshake_.names_no_key(); }
  // Valid once gone. Ok if the peer only closed the connection, as a probe does, or a member that was connected faster at another
  // address.
  [[nodiscard]] const Status& reason() const { return reason_; }
  // Valid once proven.
  [[nodiscard]] const Claim& claim() const { return handshake_.claim(); }
  [[nodiscard]] PrivateFd take_fd() { return std::move(fd_); }
  // Bytes so far, in both directions.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] Status read_handshake(std::string_view bytes, const Lock& lock, const Secret* presence);
  [[nodiscard]] bool flush();

  PrivateFd fd_;
  AnswererHandshake handshake_{Token{}};
  std::string out_;
  std::uint64_t bytes_ = 0;
  bool key_known_ = false;
  bool presence_only_ = false;
  bool other_key_ = false;
  Status reason_;
};

}  // namespace seto

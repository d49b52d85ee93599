#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "src/net/secret.h"
#include "src/net/tls_identity.h"
#include "src/net/token.h"
#include "src/net/version.h"

namespace seto {

// Names a key within this process; all zero: no key. It is never sent: who has overheard the id of a key could look it up in a
// table of guessed secrets, and would recognize the job.
using KeyId = std::array<std::uint8_t, 8>;
[[nodiscard]] KeyId key_id(const Secret& key);

// Names a key in one hello, by a keyed hash of its nonce: another one in each hello. All zero: no key.
using HelloId = std::array<std::uint8_t, 8>;

// The two ends of a connection and its purpose. Both ends of an authenticated connection hold the same claim.
struct Claim {
  std::uint8_t purpose = 0;
  Token caller{};    // the process that connected
  Token answerer{};  // the process that accepted; all zero: any process that has the key
  std::uint64_t caller_context = 0;
  std::uint64_t answerer_context = 0;
  std::uint64_t attempt = 0;
  std::uint32_t index = 0;
  auto operator<=>(const Claim&) const = default;
};

inline constexpr std::uint32_t kAuthProtocol = 3;

inline constexpr std::size_t kPreambleSize = 24;
inline constexpr std::size_t kHelloSize = 132;
inline constexpr std::size_t kChallengeSize = 108;  // also the size of a notice
inline constexpr std::size_t kProofSize = 32;
inline constexpr std::size_t kVerdictSize = 280;
// The longest text of a refusal.
inline constexpr std::size_t kVerdictTextLimit = 240;

struct Versions {
  std::uint32_t protocol = kAuthProtocol;
  std::string_view library = library_version();
};

// The caller states whether TLS follows, and its SETO_TLS and whether it uses certificates, which must be the same for all ranks.
// Then it begins TLS directly behind the hello and the answerer directly behind the challenge, with the key of the handshake or
// with certificates. Proof and verdict travel inside, and also cover what only the two ends of that TLS connection know: a relay
// can use them nowhere. If only one end uses certificates there can be no TLS, and a notice says so.
struct ChannelTerms {
  TlsChoice tls;
  bool encrypted = false;
};

// The same, as the answerer reads it in the hello.
struct StatedTerms {
  TlsMode mode = TlsMode::sites;
  bool encrypted = false;
  bool certificates = false;
};

// A longer history is forgotten, the oldest first: 1,000 peers with 16 connections each, in 0.8 MiB.
inline constexpr std::size_t kSeenHellosLimit = 16'384;

// The hellos that named a key here. Each is unique, because its nonce is random: one that comes again was overheard and repeated
// by a process that may not have the key. One thread at a time.
class SeenHellos final {
 public:
  // False: this hello has come before.
  [[nodiscard]] bool add(const HelloId& hello);

 private:
  std::unordered_set<std::uint64_t> seen_;
  std::vector<std::uint64_t> order_;  // a ring once it is full
  std::size_t oldest_ = 0;
};

}  // namespace seto

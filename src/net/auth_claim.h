#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "src/net/secret.h"
#include "src/net/token.h"

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

}  // namespace seto

#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "src/base/result.h"
#include "src/net/token.h"

namespace seto {

// What the user hands from one rank to the others, by any means: where the rendezvous listens, and the proof of membership.
inline constexpr std::size_t kUniqueIdSize = 128;
using UniqueIdBytes = std::array<char, kUniqueIdSize>;

struct UniqueId {
  std::string socket_name;  // abstract, of this machine
  Token token{};
};

[[nodiscard]] UniqueIdBytes encode(const UniqueId& id);

// Fails for bytes that no unique id has: garbage, another version, one cut short.
[[nodiscard]] Result<UniqueId> decode(const UniqueIdBytes& bytes);

}  // namespace seto

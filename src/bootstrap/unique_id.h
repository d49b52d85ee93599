#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/bootstrap/rendezvous_address.h"
#include "src/net/secret.h"
#include "src/net/token.h"

namespace seto {

// What the user hands from one rank to the others, by any means: where the rendezvous listens, and the proof of membership.
inline constexpr std::size_t kUniqueIdSize = 128;
using UniqueIdBytes = std::array<char, kUniqueIdSize>;

struct UniqueId {
  enum class Serves : std::uint32_t {
    communicator = 1,  // one
    job,               // any number, one after another, until its process ends
  };
  Serves serves = Serves::communicator;
  Token token{};
  Contact contact;
};

[[nodiscard]] UniqueIdBytes encode(const UniqueId& id);

// Fails for bytes that no unique id has: garbage, another version, one cut short.
[[nodiscard]] Result<UniqueId> decode(const UniqueIdBytes& bytes);

// 256 hexadecimal digits.
[[nodiscard]] std::string hex_text(const UniqueIdBytes& bytes);
[[nodiscard]] Result<UniqueIdBytes> parse_unique_id(std::string_view hex);

// What a member proves that it has: made from the token, which itself never crosses a network.
[[nodiscard]] Secret rendezvous_key(const Token& token);

}  // namespace seto

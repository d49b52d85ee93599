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

// The bytes that the user passes from one rank to the others by any means: the address of the rendezvous and the proof of
// membership.
inline constexpr std::size_t kUniqueIdSize = 128;
using UniqueIdBytes = std::array<char, kUniqueIdSize>;

struct UniqueId {
  enum class Serves : std::uint32_t {
    communicator = 1,  // one communicator
    job,               // any number of communicators, until the server's process ends
  };
  Serves serves = Serves::communicator;
  Token token{};
  RendezvousAddress address;
};

[[nodiscard]] UniqueIdBytes encode(const UniqueId& id);

// Fails for bytes that are not a whole unique id of this version.
[[nodiscard]] Result<UniqueId> decode(const UniqueIdBytes& bytes);

// 256 hexadecimal digits.
[[nodiscard]] std::string hex_text(const UniqueIdBytes& bytes);
[[nodiscard]] Result<UniqueIdBytes> parse_unique_id(std::string_view hex);

// The key that a member proves. It is derived from the token, which never crosses a network.
[[nodiscard]] Secret rendezvous_key(const Token& token);

}  // namespace seto

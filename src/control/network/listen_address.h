#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/net/address.h"
#include "src/net/token.h"

namespace seto {

// More than any machine needs; whoever has more tells the best of them.
inline constexpr std::size_t kDoorAddressLimit = 32;

// What a process tells the others of its front door.
struct DoorAddress {
  Token process{};                        // who it is: random, and proved by the handshake; no secret
  std::string library;                    // its version
  std::vector<SocketAddress> candidates;  // where it listens, best first
};
[[nodiscard]] std::string encode(const DoorAddress& address);
[[nodiscard]] Result<DoorAddress> decode_door_address(const std::string& bytes);

}  // namespace seto

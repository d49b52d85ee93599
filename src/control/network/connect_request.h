#pragma once

#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/control/handshake.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// What a connection is for. Numbers travel: never renumbered. Others than these are free for who calls meet().
inline constexpr std::uint8_t kPurposeData = 1;
inline constexpr std::uint8_t kPurposeControl = 2;
inline constexpr std::uint8_t kPurposeQuestion = 255;  // of the front door itself: will that call come?

// One connection between two contexts of two processes, as each of them asks for it.
struct Visit {
  std::string remote_address;  // what the peer's FrontDoor::address() said
  std::uint8_t purpose = kPurposeData;
  ContextId mine = 0;
  ContextId theirs = 0;
  AttemptId attempt = 0;    // both say the same
  std::uint32_t index = 0;  // of several for the same purpose
  Secret key;
  Deadline until;
};

// Which caller is meant, as the answerer knows it once the caller is proven.
struct VisitKey {
  KeyId key{};
  Claim claim;
  auto operator<=>(const VisitKey&) const = default;
};

}  // namespace seto

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/result.h"
#include "transports/resume/heard.h"

namespace seto::resume {

// The first words of each end on a path that is to continue a connection. The path has been authenticated before, for exactly
// this pair of contexts: nothing here is a secret, and nothing proves anything.
struct Hello {
  std::uint64_t link = 0;      // the connection
  std::uint64_t sender = 0;    // random numbers of the two ends, from when the connection was first opened: a context that
  std::uint64_t receiver = 0;  // started again has forgotten what it acknowledged, and cannot continue
  std::uint32_t attempt = 0;   // grows with each path that the dialer opens, and is the same in the answer
  std::uint32_t path = 0;
  Heard heard;
};

inline constexpr std::size_t kHelloFixed = 40;
inline constexpr std::size_t kLongestHello = kHelloFixed + kLongestHeard;
using HelloBytes = std::array<std::byte, kLongestHello>;

// Returns how many bytes were written.
std::size_t encode(const Hello& hello, HelloBytes& bytes);
// The length of the whole hello, from its first kHelloFixed + 16 bytes. A failure means malformed input.
Result<std::size_t> length_of_hello(std::span<const std::byte> beginning);
// The bytes must be exactly one hello.
Result<Hello> decode_hello(std::span<const std::byte> bytes);

// The receiver of a hello compares it with this.
struct Expected {
  std::uint64_t link = 0;
  std::uint64_t peer = 0;  // its random number
  std::uint64_t own = 0;
  std::uint32_t latest_attempt = 0;  // of the hellos that were admitted on this path
  std::uint32_t paths = 0;           // how many the connection has
};
// A failure says why the path cannot continue the connection; the path is closed, and the connection is as before.
Status admit(const Hello& hello, const Expected& expected);

}  // namespace seto::resume

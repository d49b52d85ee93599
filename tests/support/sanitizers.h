#pragma once

#include <cstdint>

// Under a sanitizer the long tests do less: the release build runs every case, and the sanitizers need to see each line run, not
// each number.
namespace seto::support {

#ifdef SETO_SANITIZED
inline constexpr std::uint64_t kLess = 10;  // rounds are fewer by this factor
inline constexpr std::uint64_t kEvery = 4;  // of long cases one of so many is taken
#else
inline constexpr std::uint64_t kLess = 1;
inline constexpr std::uint64_t kEvery = 1;
#endif

// Repetitions of one case, which try other interleavings each time.
constexpr std::uint64_t repetitions(std::uint64_t without_sanitizer, std::uint64_t with_sanitizer) {
  return kLess > 1 ? with_sanitizer : without_sanitizer;
}

}  // namespace seto::support

#pragma once

#include <cstddef>
#include <cstdint>

namespace seto::soak {

inline constexpr int kMostRanks = 8;  // sums and products of this number of ranks are exact in floats of 8 bits
inline constexpr int kMostGroups = 6;

#ifdef SETO_SANITIZED
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of one part of a call
inline constexpr std::uint64_t kNoticeMs = 10'000;               // longer, for instrumented code on shared cores
inline constexpr std::uint32_t kOperationMs = 30'000;
inline constexpr std::uint32_t kInitMs = 30'000;
inline constexpr std::uint64_t kGenerationMs = 80'000;  // longer than the deadlines of the library, whose texts say more
#else
inline constexpr std::size_t kMostBytes = std::size_t{4} << 20;
inline constexpr std::uint64_t kNoticeMs = 1'000;  // from a fault until every other rank has reported it
inline constexpr std::uint32_t kOperationMs = 15'000;
inline constexpr std::uint32_t kInitMs = 20'000;
inline constexpr std::uint64_t kGenerationMs = 45'000;
#endif
inline constexpr std::uint32_t kShortInitMs = 5'000;  // of an init in which a rank dies before the others know it
inline constexpr std::uint32_t kIdleIdMs = 5'000;     // how long the server of an unused id runs
inline constexpr std::uint64_t kSettleMs =
    20'000;  // after this time the remains of a failure, such as a rendezvous (10 s), are gone

}  // namespace seto::soak

#pragma once

#include <cstddef>
#include <cstdint>

namespace seto::tcp {

// The limits of a link. (Those of its streams and messages are in streams/inbox.h.)

// 4 Gbit/s: twice what a long link usually has, so that credit comes back before it is needed. Measured with half of it, over
// 60 ms and 1 Gbit/s: 100 MB 1,722 ms (1,169 with this), 10 MB 175 ms (115), 100 MB in fp16 776 ms (561).
inline constexpr std::uint64_t kFarBytesPerUs = 500;
// Numbers that may overtake a missing one where there are several sockets: a socket that lost a segment may stall for its whole
// retransmission time while the others go on. A window of 15 MB holds 117,000 short messages. The sender stops at three
// quarters.
inline constexpr std::size_t kMostBeyond = std::size_t{1} << 17;
inline constexpr std::uint64_t kTellAfter = kMostBeyond / 4;
// Payloads that are kept: more than the kernel takes of all sockets. Windows of streams and messages limit them before.
inline constexpr std::uint64_t kLeastKept = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kPipesKept = 4;
// Shorter payloads are copied when they are sent: to look for them later would cost more.
inline constexpr std::uint32_t kCopiedAtOnce = 4 << 10;
// The receiver tells what it has heard after an eighth of this, or 10 ms: so slots are soon used again.
inline constexpr std::uint64_t kToldWindow = std::uint64_t{8} << 20;
// A device that reads a payload for longer is given up. It repeats packets for about half a second, some devices for two.
inline constexpr std::uint64_t kLongestReadNs = 5'000'000'000;
inline constexpr std::uint64_t kLeastStallNs = 200'000'000;
inline constexpr std::uint64_t kStallRoundTrips = 3;
// Copies of payloads that are kept, of all links of a context.
inline constexpr std::size_t kMostCopies = std::size_t{1} << 30;
inline constexpr std::uint64_t kKeptFree = 1'024;  // numbers for openings and for frames that tell what was heard
// A window holds two round trips at the rate that the peer tells. A rate is told again if it has changed by this factor.
inline constexpr std::uint64_t kRoundTripsAWindow = 2;
inline constexpr double kTellRate = 1.25;

}  // namespace seto::tcp

#pragma once

#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/topology/tiers.h"

namespace seto {

// How fast a member of the outermost tier fills the link that limits its share: it carries `fixed` bytes whatever the member
// owns, and `growth` bytes more for each byte that it owns.
struct ShareLimit {
  double fixed = 0;
  double rate = 1;
};

// A buffer of one byte is cut into shares, and each member of the outermost tier owns one.
//
// An owner adds up its share for all members, or hands it on to them. What a member owns costs it that many transfers to the
// further ones. So shares go where there is capacity to spare, as water fills the lowest ground first: all members are busy for
// the same time, or one is alone with what it must carry anyway.
struct Shares {
  std::vector<ShareLimit> limits;  // by member
  double growth = 0;
  double least_seconds = 0;  // that some member needs, whatever it owns

  // The shares with which the last member ends first. Their sum is 1.
  [[nodiscard]] std::vector<double> filled() const;
  // The time until the last member ends with these shares.
  [[nodiscard]] double seconds(const std::vector<double>& shares) const;
};

// The shares of an all_reduce: each member sends its own sum and receives the result (1), and exchanges what it owns with all
// others.
Shares shares_of_sums(std::span<const PortRates> rates);
// The shares of a broadcast that leaves the root's member once, and which the owners pass on among each other. A reduce is the
// same in the other direction: exchange up and down.
Shares shares_from_root(std::span<const PortRates> rates, std::size_t root);

// The number of chunks that each rank of a member owns, by member. All ranks together have `each` chunks on average, for the
// first `each` from `least` on with which the last member ends within kNearlyFilled of the shares; else for the best of
// kCutsTried. Rounding adds at most half a chunk to a rank, and takes at most half a chunk of each from the total. So a member
// that should own w > 0 with r of n ranks owns at most (w + r / n) / (2 each - 1) more.
std::vector<std::uint32_t> chunks_of_shares(const Shares& shares, const Tiers& tiers, std::uint32_t least);
inline constexpr double kNearlyFilled = 1.03;
inline constexpr std::uint32_t kCutsTried = 16;

}  // namespace seto

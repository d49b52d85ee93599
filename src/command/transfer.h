#pragma once

#include <cstddef>

namespace seto::command {

inline constexpr std::size_t kFirstTransfer = std::size_t{16} << 10;
// Of the largest transfer: one alone tells of whatever else ran just then.
inline constexpr int kBestOf = 3;
inline constexpr std::size_t kMostTransfer = std::size_t{64} << 20;

// Bytes of the next transfer of a measurement that is to take so long in all, from what the last one took beyond a round trip;
// 0: the last one is the figure. From 16 KiB up, so that a link of any speed is done in time: 5 transfers at most.
std::size_t next_transfer(std::size_t bytes, double took_s, double budget_s);

}  // namespace seto::command

#pragma once

#include <cstddef>

namespace seto::command {

inline constexpr std::size_t kFirstTransfer = std::size_t{16} << 10;
// Repetitions of the largest transfer. A single one would also measure other programs that ran at that moment.
inline constexpr int kBestOf = 3;
inline constexpr std::size_t kMostTransfer = std::size_t{64} << 20;

// Returns the bytes of the next transfer of a measurement with this total budget, from the time of the last transfer minus a
// round trip. 0 means that the last transfer is the result. It starts at 16 KiB, so that a link of any speed finishes in time,
// with at most 5 transfers.
std::size_t next_transfer(std::size_t bytes, double took_s, double budget_s);

}  // namespace seto::command

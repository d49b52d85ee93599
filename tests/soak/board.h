#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "include/seto/seto.h"
#include "tests/soak/limits.h"

namespace seto::soak {

std::uint64_t now_ns();

// Yields until the condition is true. Returns false at the deadline.
bool eventually(const std::function<bool()>& true_at_last, std::uint64_t within_ms);

// Connections that are reset together.
enum class Cut : std::uint8_t { one, several, data, control, everything };
inline constexpr std::size_t kCuts = 5;
const char* name_of(Cut cut);

// Counts of the work of all processes together.
struct Tally {
  std::atomic<std::uint64_t> communicators{0}, operations{0}, bytes{0}, checks{0}, splits{0}, aborts{0}, kills{0}, wrong_calls{0},
      dumps{0};
  std::atomic<std::uint64_t> slowest_abort_us{0}, slowest_kill_us{0}, slowest_mismatch_us{0};
  std::array<std::atomic<std::uint64_t>, kCuts> cuts{};
  std::atomic<std::uint64_t> cut_connections{0}, cuts_while_computing{0};
};

void raise_to(std::atomic<std::uint64_t>& greatest, std::uint64_t value);

// Memory that all processes share. The parent clears it between generations, when no process runs.
struct Board {
  static constexpr std::size_t kIds = 2;
  static constexpr std::size_t kGatherBytes = std::size_t{64} << 10;

  Tally tally;
  std::array<setoUniqueId, kIds> ids{};
  std::array<std::atomic<bool>, kIds> id_ready{};
  std::atomic<bool> given_up{false};                             // a rank has failed, so no rank waits for another any more
  std::atomic<int> made{0};                                      // ranks that have their communicator
  std::atomic<int> at_ending{0};                                 // ranks that have finished their acts; no fault happens before
  std::atomic<int> spared{0};                                    // ranks of whose connections none is cut any more
  std::atomic<std::uint64_t> fault_ns{0};                        // when the drawn ending began
  std::array<std::atomic<std::uint64_t>, kMostRanks> arrived{};  // rounds of the callback, by rank
  std::array<std::array<std::array<std::byte, kGatherBytes>, kMostRanks>, 2> gathered{};

  void clear();
};

// Makes the board of this run, zeroed, which children inherit.
Board& make_board();

}  // namespace seto::soak

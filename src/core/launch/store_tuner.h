#pragma once

#include <array>
#include <cstdint>

#include "src/base/config.h"
#include "src/device/reduce.h"

namespace seto {

// How a rank writes slots and results: through its cache or past it. The right answer depends on where the cores of two ranks
// are at the moment (a virtual machine moves them while you watch), on the size, and is worth a factor of five. It changes no
// bits and needs no agreement, so every rank measures it as it goes: all try the same way at the same call, each keeps what was
// fastest for it, and looks at the others again now and then.
class StoreChoice final {
  static constexpr int kMostWays = 4;

 public:
  struct Way {
    Store slots = Store::cached;
    Store results = Store::cached;
    std::uint32_t index = 0;  // of the choice that gave it
  };

  // Below this no way pays for a streaming store and its fence: measured with two ranks, near and far.
  static constexpr std::uint64_t kWorthChoosing = 16 << 10;
  static constexpr bool matters(std::uint64_t bytes) { return bytes >= kWorthChoosing; }

  // Results go past the cache only where they would not stay in it anyway. `slots` may be settled by SETO_SLOT_STORE.
  // `half`: the choice for half the bytes, which lives as long as this one; or null.
  explicit StoreChoice(std::uint64_t bytes, SlotStore slots = SlotStore::automatic, const StoreChoice* half = nullptr);

  // Which way the next call of this size goes. Calls are counted alike on all ranks.
  Way next();
  // How long that call took, from next() on. Several may be under way.
  void took(const Way& way, std::uint64_t ticks);

 private:
  static constexpr std::uint64_t kBeyondCache = 1 << 20;
  static constexpr std::uint64_t kBeyondEveryCache = 16 << 20;

  void inherit();
  std::array<Way, kMostWays> way_{};
  std::uint32_t ways_ = 0;
  std::array<double, kMostWays> ticks_{};  // running means; 0: not tried
  std::uint32_t calls_ = 0;
  const StoreChoice* half_ = nullptr;  // what to begin with
};

}  // namespace seto

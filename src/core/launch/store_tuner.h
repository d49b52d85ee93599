#pragma once

#include <array>
#include <cstdint>

#include "src/base/config.h"
#include "src/core/choice/boundaries.h"
#include "src/device/reduce.h"

namespace seto {

// Chooses how a rank writes slots and results: through its cache or past it. The better way depends on the size and on the
// distance between the cores of two ranks, which a virtual machine changes at any time; the wrong way costs a factor of five. The
// choice changes no bits and needs no agreement, so every rank measures it while it runs: all ranks try the same way at the same
// call, and each keeps the way that was fastest for it and tries the others again now and then.
class StoreTuner final {
  static constexpr int kMostWays = 4;

 public:
  struct Way {
    Store slots = Store::cached;
    Store results = Store::cached;
    std::uint32_t index = 0;  // its place among the ways of the tuner
  };

  // Below this size a streaming store costs more than it saves, because of its fence: measured with two ranks, near and far.
  static constexpr std::uint64_t kWorthChoosing = 16 << 10;
  static constexpr bool matters(std::uint64_t bytes) { return bytes >= kWorthChoosing; }

  // Results go past the cache only if they are too large to stay in it. `slots`: the setting SETO_SLOT_STORE. `half`: the tuner
  // for half the bytes, which lives as long as this one; or null.
  explicit StoreTuner(std::uint64_t bytes, SlotStore slots = SlotStore::automatic, const StoreTuner* half = nullptr,
                      const StoreSizes& sizes = {});

  // The way of the next call of this size. All ranks count calls alike.
  Way next();
  // Reports how long that call took since next(). Several calls may be under way.
  void took(const Way& way, std::uint64_t ticks);

 private:
  void inherit();
  std::array<Way, kMostWays> way_{};
  std::uint32_t ways_ = 0;
  std::array<double, kMostWays> ticks_{};  // running means; 0: not tried
  std::uint32_t calls_ = 0;
  const StoreTuner* half_ = nullptr;  // where the first choice comes from
};

}  // namespace seto

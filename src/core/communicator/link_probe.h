#pragma once

#include <cstdint>
#include <functional>

#include "src/base/result.h"
#include "src/core/choice/cost_model.h"

namespace seto {

// Long enough for the cost of an exchange not to matter, and fits a second-level cache together with its slots.
inline constexpr std::uint64_t kProbeBytes = 512 << 10;
// Short messages one after another, to measure what one of them costs. Within a node there are few, so that none waits until the
// receiver has taken an earlier one: 16 took 0.85 us each where ranks share cores, of which the processor needed less than 0.1.
inline constexpr int kProbeBurst = 16;
inline constexpr int kProbeBurstOfANode = 4;
// The budget of one link. An idle machine needs a few milliseconds.
inline constexpr double kProbeSeconds = 16e-3;

// How a link is measured. The unit test gives a model of a link.
struct ProbeActions {
  // Sends that many bytes to the peer and waits for a short answer. 0: a short message.
  std::function<Status(std::uint64_t bytes)> exchange;
  // Sends so many short messages one after another and waits for a short answer to the last.
  std::function<Status(int messages)> burst;
  std::function<double()> seconds;                // a clock
  std::function<void(std::uint64_t bytes)> pass;  // as probe_cache(), on a node; empty: its cache is not measured
};

// The cost of a link of that tier. The time of a burst beyond that of one exchange is the time of its further messages at the
// slower end, which is taken for both. Asks the budget before each exchange, so that it takes at most the budget and one exchange
// more. The rate of a far link is not measured (see src/base/far_link.h), because the first bytes wait for its congestion window
// to grow: 512 KiB over 60 ms and 1 Gbit/s came at 3.5 MB/s, of 125 MB/s. Such a link is assumed to have kAssumedBytesPerSecond.
// `known_near`: the kernel measured a short round trip, so a long exchange only shows that the cores are busy.
[[nodiscard]] Result<TierCost> probe_link(const ProbeActions& actions, TierKind tier, bool known_near = false);

}  // namespace seto

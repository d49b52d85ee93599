#include "src/core/communicator/link_probe.h"

#include <algorithm>
#include <cmath>

#include "src/base/far_link.h"
#include "src/base/log.h"
#include "src/core/choice/boundaries.h"
#include "src/core/communicator/cache_probe.h"

namespace seto {
namespace {

constexpr int kMostExchanges = 400;
constexpr int kExchangesABatch = 20;
constexpr int kMostBursts = 4;
constexpr int kMostBurstsOfANode = 16;  // short ones
constexpr int kMostCopies = 12;
// A link beyond the node may be slow: the first copy is short, and if it takes this long there is no other.
constexpr std::uint64_t kFirstCopyBytes = 64 << 10;
constexpr double kSlowCopySeconds = kProbeSeconds / 4;

// The shortest of several batches, since every disturbance makes a batch longer.
Result<double> exchange_seconds(const ProbeActions& actions, double start) {
  double best = INFINITY;
  double now = start;
  for (int done = 0; done < kMostExchanges && now - start < kProbeSeconds / 2;) {
    const double batch = now;
    int exchanges = 0;
    for (; exchanges < kExchangesABatch && now - start < kProbeSeconds / 2; ++exchanges) {
      SETO_TRY(actions.exchange(0));
      now = actions.seconds();
    }
    best = std::min(best, (now - batch) / exchanges);
    done += exchanges;
  }
  return best;
}

// The shortest of several bursts. An exchange has two messages with two ends each, so it bounds what an end costs. A burst that
// took no longer than an exchange shows that the clock is too coarse.
Result<double> message_seconds(const ProbeActions& actions, TierKind tier, double start, double exchange) {
  const bool is_node = tier == TierKind::node;
  const int messages = is_node ? kProbeBurstOfANode : kProbeBurst;
  const int most = is_node ? kMostBurstsOfANode : kMostBursts;
  double best = INFINITY;
  for (int done = 0; done < most && (done == 0 || actions.seconds() - start < kProbeSeconds / 2); ++done) {
    const double begin = actions.seconds();
    SETO_TRY(actions.burst(messages));
    best = std::min(best, actions.seconds() - begin);
  }
  return std::clamp((best - exchange) / (messages - 1), 0.0, exchange / 4);
}

// One exchange of the time of a copy is that of its messages. The lower bound keeps the rate finite if the clock is too coarse.
double rate_of(std::uint64_t bytes, double copy, double exchange) {
  return static_cast<double>(bytes) / std::max(copy - exchange, copy / 8);
}

Result<double> copy_seconds(const ProbeActions& actions, std::uint64_t bytes) {
  const double start = actions.seconds();
  SETO_TRY(actions.exchange(bytes));
  return actions.seconds() - start;
}

// A node that other programs kept busy says nothing about its memory: then a hop seems to take a scheduler's turn. The factor is
// wide: ranks that share a core need 10 times the shipped latency for a hop.
constexpr double kPlausibleFactor = 400;

bool is_plausible(double measured, double shipped) {
  return measured <= shipped * kPlausibleFactor && measured >= shipped / kPlausibleFactor;
}

TierCost plausible_node(const TierCost& cost) {
  const TierCost shipped = CostModel().node;
  if (is_plausible(cost.latency_seconds, shipped.latency_seconds) &&
      is_plausible(cost.bytes_per_second, shipped.bytes_per_second)) {
    TierCost believed = cost;
    believed.long_message_bytes = long_message_bytes_of(cost);
    return believed;
  }
  SETO_LOG(info,
           "a hop within this machine seemed to take %.3g us at %.3g GB/s; other programs kept it busy, so the shipped constants "
           "stay (%.3g us, %.3g GB/s): name measured ones in SETO_TUNING_FILE",
           cost.latency_seconds * 1e6, cost.bytes_per_second * 1e-9, shipped.latency_seconds * 1e6,
           shipped.bytes_per_second * 1e-9);
  return shipped;
}

// The rate of a link that is not far: that of the fastest of several copies.
Result<double> rate(const ProbeActions& actions, TierKind tier, double start, double exchange) {
  if (tier != TierKind::node) {
    SETO_ASSIGN(const double copy, copy_seconds(actions, kFirstCopyBytes));
    if (copy >= kSlowCopySeconds) return rate_of(kFirstCopyBytes, copy, exchange);
  }
  double best = INFINITY;
  for (int copies = 0; copies < kMostCopies && (copies == 0 || actions.seconds() - start < kProbeSeconds); ++copies) {
    SETO_ASSIGN(const double copy, copy_seconds(actions, kProbeBytes));
    best = std::min(best, copy);
  }
  return rate_of(kProbeBytes, best, exchange);
}

}  // namespace

Result<TierCost> probe_link(const ProbeActions& actions, TierKind tier, bool known_near) {
  const double start = actions.seconds();
  SETO_ASSIGN(const double exchange, exchange_seconds(actions, start));
  if (is_far_seconds(exchange) && !known_near) {
    if (tier == TierKind::node) return plausible_node({exchange / 2, CostModel().node.bytes_per_second, 0});
    return TierCost{exchange / 2, kAssumedBytesPerSecond, CostModel().of(tier).message_seconds};
  }
  SETO_ASSIGN(const double message, message_seconds(actions, tier, start, exchange));
  SETO_ASSIGN(const double bytes_per_second, rate(actions, tier, start, exchange));
  if (tier != TierKind::node) return TierCost{exchange / 2, bytes_per_second, message};
  const CacheCost cache = actions.pass ? probe_cache(actions.pass, actions.seconds) : CacheCost();
  return plausible_node({exchange / 2, bytes_per_second, message, cache.bytes_per_second, cache.bytes});
}

}  // namespace seto

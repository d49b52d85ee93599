#include "src/core/choice/boundaries.h"

#include <algorithm>
#include <bit>

namespace seto {
namespace {

constexpr double kShareOfAHop = 0.5;
constexpr double kSlotsOfAStream = 2;
constexpr double kShareOfTheCache = 0.5;

bool is_one_node(const Tiers& tiers) { return tiers.count() == 1 && tiers.kind(0) == TierKind::node; }

std::uint64_t power_of_two(double bytes) { return std::bit_floor(static_cast<std::uint64_t>(bytes)); }

}  // namespace

double long_message_bytes_of(const TierCost& node) {
  const double shipped = CostModel().node.long_message_bytes;
  return std::clamp(kShareOfAHop * node.latency_seconds * node.bytes_per_second, shipped / 2, 8 * shipped);
}

std::uint64_t lends_from(Rank sender, std::span<const std::uint32_t> receivers, const Tiers& tiers, double crowding,
                         const CostModel& model) {
  const bool is_within_node = std::all_of(receivers.begin(), receivers.end(), [&](std::uint32_t receiver) {
    return tiers.kind(tiers.between(sender, static_cast<Rank>(receiver))) == TierKind::node;
  });
  const double shipped = CostModel().node.long_message_bytes;
  if (!is_within_node || model.node.long_message_bytes <= 0) return static_cast<std::uint64_t>(shipped);
  const double measured = model.node.long_message_bytes;
  return static_cast<std::uint64_t>(crowding > 1 ? std::max(measured, shipped) : measured);
}

std::uint64_t largest_slice(bool passes_on, const Tiers& tiers, const CostModel& model) {
  const auto of_cache = [](double bytes) { return kShareOfTheCache * bytes / kSlotsOfAStream; };
  const double shipped = of_cache(CostModel().node.cached_bytes);
  if (!is_one_node(tiers) || model.node.cached_bytes <= 0) return power_of_two(shipped);
  const double most = std::clamp(of_cache(model.node.cached_bytes), shipped / 4, 4 * shipped);
  return power_of_two(passes_on ? most / kShareOfTheCache : most);
}

StoreSizes store_sizes(const TierCost& node) {
  const auto near = [](double bytes, double shipped) {
    return power_of_two(bytes > 0 ? std::clamp(bytes, shipped / 4, 4 * shipped) : shipped);
  };
  const TierCost shipped = CostModel().node;
  return {near(node.cached_bytes, shipped.cached_bytes), near(node.last_level_bytes / 2, shipped.last_level_bytes / 2)};
}

}  // namespace seto

#include "src/core/choice/estimate.h"

#include <algorithm>

#include "src/base/far_link.h"
#include "src/core/choice/flow.h"

namespace seto {
namespace {

// The constant of a node is the rate of copying, and a copied byte is read once and written once.
constexpr double kPassesOfACopy = 2;

// One fused step of one slice, measured: row `step` of ./dev bench host.
constexpr double kStepSeconds = 22e-9;

// The time of passes over `bytes`. Within a node a copy out of a slot reads lines of another core and writes lines of this one.
// So a pass over a slot takes what a copy takes, less a pass over the cache: a second look at a buffer is cheap as long as it is
// cached, and costs like every other pass where it is not. The part that is cached shrinks with the size, so that time grows
// steadily. With several tiers all passes cost half a copy.
double seconds_of_passes(const PlanLoad& load, double bytes, double crowding, const Tiers& tiers, const CostModel& model) {
  const TierCost& node = model.node;
  const double of_a_copy = 1 / node.bytes_per_second;
  const double of_a_pass = of_a_copy / kPassesOfACopy;
  const bool is_told_apart = tiers.count() == 1 && node.cached_bytes_per_second > 0 && load.rank.memory > 0;
  if (!is_told_apart) return bytes * of_a_pass;
  const double of_cached = std::min(of_a_pass, 1 / node.cached_bytes_per_second);
  const bool has_slots = tiers.kind(0) == TierKind::node;
  const double in_slots = has_slots ? std::min(1.0, (load.rank.sent + load.rank.received) / load.rank.memory) : 0;
  const double cached = std::min(1.0, node.cached_bytes / std::max(1.0, bytes * crowding));
  const double of_a_slot = of_a_copy - of_cached;
  return bytes * (cached * (in_slots * of_a_slot + (1 - in_slots) * of_cached) + (1 - cached) * of_a_pass);
}

// A machine that was too busy to copy at its rate during the measurement would also have encoded slowly. Without this correction
// one busy moment would make a codec look faster within a node, and every later call would be slower.
double codec_rate(const CostModel& model) {
  const double busy = model.source == CostSource::measured ? model.node.bytes_per_second / CostModel().node.bytes_per_second : 1;
  return model.codec_bytes_per_second * std::min(1.0, busy);
}

// A site's link to other sites is one for all its ranks, if its rate is known or it is far. Sites that are near each other may be
// parts of one network, whose rate was measured between two ranks.
bool shares_links(const Tiers& tiers, int tier, const CostModel& model) {
  if (tiers.kind(tier) != TierKind::world) return false;
  return tiers.slowest_rate() > 0 || model.between_sites.bytes_per_second || is_far_seconds(2 * model.world.latency_seconds);
}

// Sends and receives that a latency contains.
constexpr double kMessagesOfAHop = 2;

// The time of the busiest link that the ranks of a site share. Where rates of pairs of sites are known, no pair is faster than
// the slowest of them, and a site without a rate of its own is as fast as the fastest pair. A plan that goes round the ring of
// sites depends on its links alone. `share`: bytes on the wire for each byte of the load.
double seconds_of_links(const TierLoad& asked, double share, const Tiers& tiers, const CostModel& model) {
  const double bytes = share * (asked.shared > 0 ? asked.shared : asked.wire);
  if (asked.round_the_ring && model.ring.bytes_per_second > 0) return bytes / model.ring.bytes_per_second;
  const bool knows_pairs = asked.pair > 0 && model.ring.fastest_link_rate > 0;
  const double of_site = tiers.slowest_rate();
  const double rate = of_site > 0 ? of_site : knows_pairs ? model.ring.fastest_link_rate : model.world.bytes_per_second;
  return std::max(bytes / rate, knows_pairs ? share * asked.pair / model.world.bytes_per_second : 0);
}

// The time of the busiest rank on the sockets to its peers at other sites, among which its bytes are equally divided. In a hop it
// sends and receives as many messages as it has peers there.
double seconds_of_sockets(const TierLoad& asked, double share, const Tiers& tiers, const CostModel& model) {
  const double of_a_pair = most_of_a_pair(tiers, model);
  if (of_a_pair <= 0) return 0;
  const double peers = asked.hops > 0 ? std::max(1.0, asked.messages / (kMessagesOfAHop * asked.hops)) : 1;
  return share * asked.wire / (of_a_pair * peers);
}

// A plan round the ring of sites pays for the links of the ring alone.
double latency_of(const TierLoad& asked, const TierCost& cost, const CostModel& model) {
  return asked.round_the_ring && !model.ring.order.empty() ? model.ring.latency_seconds : cost.latency_seconds;
}

// The time of a core for so many messages of its ranks, without those that `hops` latencies contain.
double seconds_of_messages(double messages, double hops, const TierCost& cost) {
  return std::max(0.0, messages - kMessagesOfAHop * hops) * cost.message_seconds;
}

}  // namespace

// A call of one slice costs its latencies plus the time of its messages, and of its bytes on wires and in memory, in each rank
// that they pass. With more slices, the first one takes that path, and the busiest wire or rank decides when the others follow.
Estimate estimate_of(const PlanLoad& load, const Tiers& tiers, const Workload& work, const CostModel& model) {
  Estimate estimate;
  estimate.memory_bytes = load.rank.memory * work.part_bytes;
  double latencies = 0;
  double first = 0;
  double busiest = 0;
  double coding = 0;
  double messages = 0;  // of all slices
  for (int t = 0; t < tiers.count(); ++t) {
    const TierLoad& asked = load.tiers[static_cast<std::size_t>(t)];
    const TierCost& cost = model.of(tiers.kind(t));
    const bool coded = (work.coded_tiers >> t & 1) != 0;
    TierEstimate& tier = estimate.tiers[static_cast<std::size_t>(t)];
    const double crowding = std::max(1.0, work.crowding * asked.average);
    tier.hops = asked.hops;
    const double bytes_of_a_part = work.part_bytes * (coded ? work.wire_share : 1);
    tier.wire_bytes = asked.wire * bytes_of_a_part;
    tier.latency_seconds =
        asked.hops * (latency_of(asked, cost, model) + (work.crowding > 1 ? model.switch_on(tiers.kind(t)) : 0));
    if (coded) coding += asked.coded * work.part_bytes / codec_rate(model);
    const double of_rank = tier.wire_bytes * crowding;  // sockets need time of the core
    if (shares_links(tiers, t, model)) {
      if (asked.shared > 0) tier.wire_bytes = asked.shared * bytes_of_a_part;
      // A rank sends no faster than it does within its site.
      tier.wire_seconds =
          std::max({seconds_of_links(asked, bytes_of_a_part, tiers, model),
                    seconds_of_sockets(asked, bytes_of_a_part, tiers, model), of_rank / model.site.bytes_per_second});
    } else if (tiers.kind(t) != TierKind::node)
      tier.wire_seconds = of_rank / cost.bytes_per_second;
    else if (coded)  // the bytes read out of slots are fewer
      estimate.memory_bytes -= asked.wire * work.part_bytes - tier.wire_bytes;
    const double turns = asked.messages * crowding;  // messages that a core handles one after another
    tier.messages = asked.messages * work.slices;
    tier.message_seconds = seconds_of_messages(turns * work.slices, asked.hops, cost);
    messages += turns * work.slices * cost.message_seconds;
    latencies += tier.latency_seconds + seconds_of_messages(turns, asked.hops, cost);
    first += std::max(1.0, asked.relays) * tier.wire_seconds;
    busiest = std::max(busiest, tier.wire_seconds);
  }
  const double passing = seconds_of_passes(load, estimate.memory_bytes, std::max(1.0, work.crowding), tiers, model);
  estimate.memory_seconds = (passing + coding) * work.crowding;
  estimate.step_seconds = load.rank.steps * work.slices * work.crowding * kStepSeconds;
  const double ranks_in_turn = load.rank.path > load.rank.memory ? load.rank.path / load.rank.memory : 1;
  first += ranks_in_turn * estimate.memory_seconds + estimate.step_seconds;
  busiest = std::max(busiest, estimate.memory_seconds + estimate.step_seconds + messages);
  estimate.seconds = latencies + first / work.slices + busiest * (1 - 1 / work.slices);
  return estimate;
}

}  // namespace seto

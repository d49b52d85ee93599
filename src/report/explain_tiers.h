#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_writer.h"
#include "src/core/choice/planner.h"

namespace seto {

// The facts on which a choice depends on one tier, and where each comes from.
struct TierFacts {
  std::string_view tier;
  int members = 0;
  double latency_seconds = 0;
  std::string latency_origin;
  double bytes_per_second = 0;
  std::string rate_origin;
  double message_seconds = 0;
  double cached_bytes_per_second = 0;  // of a node, with the bytes that are cached; 0: not known
  double cached_bytes = 0;
  double long_message_bytes = 0;  // of a node
  std::string link;               // the link between sites that binds, as in "0>1"; empty: the tier has no such link
  Flow flow;                      // of a tier beyond the node
  bool has_flow = false;
  bool sockets_are_set = false;   // SETO_TCP_STREAMS
  bool slice_is_set = false;      // SETO_SLICE_BYTES
  std::uint64_t slice_bytes = 0;  // on the wire
  std::string codec;
  std::string codec_origin;
};

// Where the constants of a tier come from, if a topology file gave some of them.
struct TierOrigins {
  std::string latency;
  std::string rate;
  std::string link;  // as TierFacts::link
};

// The part of a communicator on which facts depend.
struct LiveFacts {
  const Sites& sites;
  std::uint64_t rate_version = 0;
};

// `live`: null where the ranks are made up. The settings override what choice would take.
std::vector<TierFacts> tier_facts(const Question& question, const Tiers& tiers, const CostModel& costs, const Choice& choice,
                                  const Config& config, const LiveFacts* live);

// "1.25 GB/s", in powers of ten.
std::string rate_text(double bytes_per_second);

// "the slowest rate is 118 MB/s (measured, version 2)", or stated, or assumed.
std::string rate_text(const Sites& sites, std::uint64_t version);

// "ring of sites: 0 > 2 > 1 > 0, 30.000 ms a hop, 118 MB/s"; empty without such a ring.
std::string text_of(const SiteRing& ring);

// "  world 2 members: 30 ms (half the round trip of 0>1, measured), ..." with a line break.
std::string text_of(const TierFacts& facts);
void add_facts(JsonWriter& json, const TierFacts& facts);

// The part of its estimate in which a candidate loses most against the chosen one: "wire on world 800.000 ms more".
std::string greatest_loss(const Estimate& lost, const Estimate& chosen, const Tiers& tiers);

std::string_view kind_name(const Tiers& tiers, int tier);
// "150M", "1.5K": three digits are enough for what a plan moves.
std::string amount_text(double bytes);
// "1.50 us", "30.000 ms"
std::string duration_text(double seconds);

}  // namespace seto

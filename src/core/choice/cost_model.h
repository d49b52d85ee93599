#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/topology/search/site_order.h"
#include "src/topology/site_links.h"
#include "src/topology/tiers.h"

namespace seto {

// The cost of a tier, for closed forms.
struct TierCost {
  double latency_seconds = 0;  // of one message over one hop, with the software of both ends
  // The rate at which a rank receives from one peer; between far sites that of a site's link, which its ranks share.
  double bytes_per_second = 0;
  // Time of the processor for sending a message, and again for receiving it, besides its bytes. The latency contains both. A rank
  // with several messages in one hop pays it for each of them.
  double message_seconds = 0;
  // Within a node: the rate of a pass over bytes that stay in the cache of the core, each operand counted, and how many stay. A
  // pass over a slot moves lines from one core to another. 0: not known, and all passes cost half a copy.
  double cached_bytes_per_second = 0;
  double cached_bytes = 0;
  // Within a node: a message of this length or longer stays in its sender's buffer, if its receivers can read it there. It
  // follows from latency and rate where they were measured (boundaries.h).
  double long_message_bytes = 0;
  // Within a node: the largest cache that a core reaches. 0: not known.
  double last_level_bytes = 0;

  friend bool operator==(const TierCost&, const TierCost&) = default;
};

// The ring of three sites or more whose worst link is best (site_order), as far as choice depends on it.
struct SiteRing {
  std::vector<int> order;        // empty: the links are not known, and sites are in their own order
  double latency_seconds = 0;    // of a hop: a value crosses all links but the fastest one
  double bytes_per_second = 0;   // of its slowest link; 0: unknown
  double fastest_link_rate = 0;  // of all links between sites, on the ring or not; 0: unknown

  friend bool operator==(const SiteRing&, const SiteRing&) = default;
};
SiteRing ring_of(const SiteLinks& links);

// The rate that a far link is assumed to have until it is known: 1 Gbit/s.
inline constexpr double kAssumedBytesPerSecond = 125e6;

// `expected`: the shipped values stand for those that a job would measure, in reports about ranks that are made up.
enum class CostSource : std::uint8_t { shipped, file, measured, expected };
std::string_view name_of(CostSource source);

// The constants of choice. A default-constructed object has the shipped values.
struct CostModel {
  // Two ranks of one machine: 0.1 us and 25 GB/s where their cores share a cache, 0.35 us and 12 GB/s where they do not.
  // A message is a system call at each end beyond the node.
  TierCost node{0.25e-6, 15e9, 0.05e-6, 100e9, 1 << 20, 16 << 10, 32 << 20};
  TierCost site{8e-6, 3.0e9, 2e-6};
  TierCost world{30e-3, 0.1e9, 2e-6};
  // A hop between ranks that share a core is a switch of the scheduler (measured, 4 ranks on 2 cores: 2.4 us for 1 hop).
  double switch_seconds = 1.5e-6;
  // The rate of encoding or decoding, in bytes of the numbers, beside the rest of a pass: half the rate of one core alone,
  // beyond its cache.
  double codec_bytes_per_second = 12e9;
  CostSource source = CostSource::shipped;
  // The worst link between sites, if it is far and its round trip is known. Then `world` follows from it, except for what a file
  // states.
  LinkFacts between_sites;
  SiteRing ring;  // of the same links
  bool sites_are_stated = false;
  std::uint32_t links_digest = 0;  // SiteLinks::digest() of the links that were used
  std::uint8_t measured = 0;       // the tiers that were measured: a bit for each kind

  [[nodiscard]] bool has_measured(TierKind kind) const { return (measured >> static_cast<unsigned>(kind) & 1U) != 0; }

  // The measured latency of a node contains the switch, where the two ranks that measure share a core.
  [[nodiscard]] double switch_on(TierKind kind) const {
    return kind == TierKind::node && source == CostSource::measured && !has_shipped(kind) ? 0 : switch_seconds;
  }

  // The shipped constants are in use for this tier, up to the digits of a text: also where a measurement was not believed.
  [[nodiscard]] bool has_shipped(TierKind kind) const;

  // Takes what is known of the links between sites: half the round trip is the latency, and a rate that is not known is assumed
  // to be that of the slowest site that states one, or kAssumedBytesPerSecond. Only measured constants are replaced. Where the
  // kernel knows a shorter round trip than exchanges did, its value limits the latency, so that a near link stays near.
  void use(const Sites& sites);
  // The kernel knows the round trip on this tier, and it is not far, however long exchanges take.
  static bool knows_near_link(const Sites& sites, TierKind kind);
  // The worst link between sites is far and its round trip is known, so that no exchange is needed to measure it.
  static bool knows_link(const Sites& sites);

  [[nodiscard]] TierCost& of(TierKind kind) { return kind == TierKind::node ? node : kind == TierKind::site ? site : world; }
  [[nodiscard]] const TierCost& of(TierKind kind) const { return const_cast<CostModel*>(this)->of(kind); }

  friend bool operator==(const CostModel&, const CostModel&) = default;
};

// "node.latency_us 0.25" and so on, one constant on each line, in six digits: the format of parse_costs.
std::string costs_text(const CostModel& costs);
// The constants, as in a text, that `stated` has instead of shipped ones and `used` does not have: "world.latency_us, switch_us".
std::string unused_constants(const CostModel& stated, const CostModel& used);
// Reads lines as above, in any order, with or without '='. '#' begins a comment. A constant that is not named keeps its shipped
// value. An error text names line and key.
Result<CostModel> parse_costs(std::string_view text, CostSource source);
Result<CostModel> read_costs(const std::string& path);

}  // namespace seto

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/topology/tiers.h"

namespace seto {

// What a tier costs, for closed forms.
struct TierCost {
  double latency_seconds = 0;   // one message, one hop, both ends' software included
  double bytes_per_second = 0;  // of a rank that takes what a peer sends

  friend bool operator==(const TierCost&, const TierCost&) = default;
};

enum class CostSource : std::uint8_t { shipped, file, measured };
std::string_view name_of(CostSource source);

// The constants of choice. Values made here are the shipped ones.
struct CostModel {
  // Two ranks of one machine: 0.1 us and 25 GB/s where their cores share a cache, 0.35 us and 12 GB/s where they do not.
  TierCost node{0.25e-6, 15e9};
  TierCost site{8e-6, 3.0e9};
  TierCost world{30e-3, 0.1e9};
  // A hop between ranks that share a core is a switch of the scheduler (measured, 4 ranks on 2 cores: 2.4 us for 1 hop).
  double switch_seconds = 1.5e-6;
  // What a rank encodes or decodes, of the numbers, beside the rest of its pass: half of what one core does alone beyond the
  // cache.
  double codec_bytes_per_second = 12e9;
  CostSource source = CostSource::shipped;
  std::uint8_t measured = 0;  // which tiers: a bit for each kind

  [[nodiscard]] bool has_measured(const Tiers& tiers) const {
    for (int tier = 0; tier < tiers.count(); ++tier)
      if ((measured >> static_cast<unsigned>(tiers.kind(tier)) & 1U) == 0) return false;
    return true;
  }

  [[nodiscard]] TierCost& of(TierKind kind) { return kind == TierKind::node ? node : kind == TierKind::site ? site : world; }
  [[nodiscard]] const TierCost& of(TierKind kind) const { return const_cast<CostModel*>(this)->of(kind); }

  friend bool operator==(const CostModel&, const CostModel&) = default;
};

// "node.latency_us 0.25" and so on, one constant a line, in six digits: what parse_costs reads.
std::string costs_text(const CostModel& costs);
// Lines as above, in any order, with or without '='; '#' begins a comment, what is not named keeps its shipped value. A failure's
// text names line and key.
Result<CostModel> parse_costs(std::string_view text, CostSource source);
Result<CostModel> read_costs(const std::string& path);

}  // namespace seto

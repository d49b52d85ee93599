#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/base/result.h"
#include "src/topology/tiers.h"

namespace seto {

// What choice may look at: the same on every rank.
struct Question {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::uint64_t bytes = 0;  // of one part
  DataType type = DataType::float32;
  std::string_view pin;     // an algorithm by name, or empty
  double crowding = 1;      // ranks a core, of the most crowded node; 1 if every rank has its own
};

// How a launch is cut: agreed between ranks because it follows from the question alone.
struct Cut {
  std::uint64_t slice_bytes = 0;
  std::uint32_t depth = 2;
};

struct Candidate {
  const Algorithm* algorithm = nullptr;
  double seconds = 0;      // estimated
  std::string_view refused;  // why it cannot be had; empty: it can
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  Cut cut;
  std::vector<Candidate> candidates;  // in the catalog's order
};

// What the cost forms of a tier need. Shipped constants, unless measured or read from a file.
struct TierCost {
  double latency_seconds = 0;    // one message, one hop, both ends' software included
  double bytes_per_second = 0;   // of a rank that copies what a peer wrote
};

struct CostModel {
  // Two ranks of one machine: 0.1 us and 25 GB/s where their cores share a cache, 0.35 us and 12 GB/s where they do not.
  TierCost node{0.25e-6, 15e9};
  TierCost site{8e-6, 3.0e9};
  TierCost world{30e-3, 0.1e9};
  // A hop between ranks that share a core is a switch of the scheduler (measured, 4 ranks on 2 cores: 2.4 us for 1 hop).
  double switch_seconds = 1.5e-6;
};

// Pure: equal arguments give equal answers on every rank.
Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& model);

}  // namespace seto

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/call.h"
#include "src/core/cost_model.h"
#include "src/topology/tiers.h"

namespace seto {

// What choice may look at: the same on every rank.
struct Question {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::uint64_t bytes = 0;  // of one part
  DataType type = DataType::float32;
  std::string_view pin;        // an algorithm by name, or empty
  double crowding = 1;         // ranks a core, of the most crowded node; 1 if every rank has its own
  bool deterministic = false;  // by shipped constants, whatever was measured or read
};

// Where a call is made.
struct Surroundings {
  int ranks = 1;
  const Config* config = nullptr;
  double crowding = 1;
};

// What a call asks. Its pin is a view of a table or of the config.
Question question_of(const Call& call, const Surroundings& here);

// How a launch is cut: agreed between ranks because it follows from the question alone.
struct Cut {
  std::uint64_t slice_bytes = 0;
  std::uint32_t depth = 2;
};

struct Candidate {
  const Algorithm* algorithm = nullptr;
  double seconds = 0;   // estimated
  std::string refused;  // why it cannot be had; empty: it can
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  Cut cut;
  std::vector<Candidate> candidates;  // in the catalog's order
};

// Pure: equal arguments give equal answers on every rank.
Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& model);

}  // namespace seto

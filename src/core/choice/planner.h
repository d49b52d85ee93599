#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/call/collective_call.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/choice/cost_model.h"
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
  std::uint8_t codec = 0;      // that messages may be encoded with, as plans number it; 0: they may not
  std::uint8_t codec_tiers = 0;
};

// Where a call is made.
struct Surroundings {
  int ranks = 1;
  const Config* config = nullptr;
  double crowding = 1;
  const Tiers* tiers = nullptr;
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
  std::uint8_t coded_tiers = 0;  // on which its messages are encoded
  double seconds = 0;            // estimated
  std::string refused;           // why it cannot be had; empty: it can

  // "two_shot", "two_shot in fp16"
  [[nodiscard]] std::string name(const Question& question) const;
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  std::uint8_t codec = 0;  // 0: exact
  std::uint8_t coded_tiers = 0;
  Cut cut;
  std::vector<Candidate> candidates;  // in the catalog's order
};

// Sums of floats alone, of those types that the codec takes. Number: as plans number it.
bool takes_codec(std::uint8_t number, Collective collective, DataType type, ReduceOp op);
// Where it does not take it, nothing.
void allow_codec(Question& question, ReduceOp op, const CodecSetting& setting, const Tiers& tiers);

// Pure: equal arguments give equal answers on every rank.
Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& model);

}  // namespace seto

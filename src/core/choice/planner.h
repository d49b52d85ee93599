#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/call/collective_call.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/choice/cost_model.h"
#include "src/core/choice/estimate.h"
#include "src/core/choice/flow.h"
#include "src/topology/tiers.h"

namespace seto {

// The input of choice, which is the same on every rank.
struct Question {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::uint64_t bytes = 0;  // bytes of one part
  DataType type = DataType::float32;
  std::string_view pin;        // an algorithm by name, or empty
  double crowding = 1;         // ranks for each core of the most crowded node; 1 if every rank has its own core
  bool deterministic = false;  // choose by the shipped constants only
  std::uint8_t codec = 0;      // number in plans of the permitted codec; 0: none
  std::uint8_t codec_tiers = 0;
  bool codec_by_link = false;  // the codec is permitted because of the link between sites, not by a call or a setting
};

// The communicator of a call, as far as choice depends on it.
struct Surroundings {
  int ranks = 1;
  const Config* config = nullptr;
  double crowding = 1;
  const Tiers* tiers = nullptr;
  const CostModel* costs = nullptr;
  const Tiers* stated_tiers = nullptr;  // without sites that were found by measuring

  // A deterministic call does not depend on what was measured.
  [[nodiscard]] const Tiers& tiers_of(const Question& question) const { return question.deterministic ? *stated_tiers : *tiers; }
};

// Makes the question of a call. Its pin is a view of a table or of the config.
Question question_of(const Call& call, const Surroundings& here);

// How a launch is cut and run. All ranks agree on it, because it follows from the question, the tiers and the constants.
struct Cut {
  std::uint64_t slice_bytes = 0;  // bytes of numbers; coded slices are shorter on the wire
  std::uint32_t depth = 2;
  StepOrder order = StepOrder::skewed;
  std::uint64_t window_bytes = 0;  // most bytes under way in a stream of a transport without slots
};

struct Candidate {
  const Algorithm* algorithm = nullptr;
  std::uint8_t coded_tiers = 0;  // tiers on which its messages are encoded
  Estimate estimate;             // of its time; undefined unless it can run
  double peers = 0;              // ranks of other hosts that the busiest rank needs, as RankLoad::peers
  bool saves_peers = false;      // as PlanLoad::saves_peers
  std::string refused;           // the reason why it is not used; empty: it may be
  bool pinned_away = false;      // the only reason is that another one is pinned
  bool left_out = false;         // the only reason is the budget of peers (peer_budget.h)

  // It would be chosen if it were the fastest and nothing were pinned.
  [[nodiscard]] bool can_run() const { return refused.empty() || pinned_away; }
  // Its estimate means something.
  [[nodiscard]] bool has_estimate() const { return can_run() || left_out; }
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

// Does nothing if the codec does not accept such a call (see takes_codec).
void allow_codec(Question& question, ReduceOp op, const CodecSetting& setting, const Tiers& tiers);

// The flow of the link of a tier, between two ranks. Its rate is unknown where it was only assumed, and so is the capacity of a
// socket, which the transport knows. The window is what the link wants: the transport grants it within SETO_LONG_LINK_MEMORY.
Flow flow_on(TierKind kind, const Tiers& tiers, const CostModel& model);

// "ring is pinned, but ...": the reason why the pinned algorithm was not chosen. Empty if it was chosen, or none is pinned.
std::string pin_ignored(const Question& question, const Choice& choice);

// The cost of a pin that is followed.
struct PinCost {
  double seconds = 0;               // predicted for the pinned algorithm
  const Candidate* best = nullptr;  // of all that could run, of the choice that was asked
  [[nodiscard]] double times() const { return seconds / best->estimate.seconds; }
};
// Absent: no algorithm is pinned, or the pin is ignored.
std::optional<PinCost> cost_of_pin(const Question& question, const Choice& choice);
// "ring is pinned: 4.24 ms predicted, 1.29 times the 3.28 ms of two_shot, which is the best"; empty without a pin that is
// followed.
std::string pin_followed(const Question& question, const Choice& choice);

// Pure: equal arguments give equal answers on every rank.
Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& model);

}  // namespace seto

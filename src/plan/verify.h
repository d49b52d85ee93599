#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/plan/hazards.h"
#include "src/plan/plan.h"
#include "src/plan/symbolic.h"

namespace seto {

// In which order an engine takes the steps of a program.
//   readiness: every lane goes on as soon as its next step can
//   skewed:    one worker a rank, slice s of a stage-t step in round s + t, lanes in order within a round; it blocks where it
//   must
enum class StepOrder : std::uint8_t { readiness, skewed };

struct VerifyRequest {
  std::vector<InPlace> in_place;  // by rank; empty: none
  std::uint32_t capacity = 1;     // messages of one channel that may be under way
  StepOrder order = StepOrder::readiness;
  Chains chains = Chains::separate;
  std::uint32_t max_encodings = 2;  // lossy encodings a result may have been through
  // A plain program's place remembers the bytes of what was rounded or came coded. An engine has them only within a pass: then
  // what is sent later was encoded once more.
  bool places_keep_bytes = true;
  // A lowered program's first encoding of each chunk on a rank adds a residual of that rank's.
  bool residuals = false;
  // Local programs, joined as one all_to_all: [from * ranks + to] is how many messages go that way. Chunks beyond are nobody's:
  // they must stay untouched. Empty: a collective, all of whose chunks are owed.
  std::vector<std::uint32_t> messages;
};

// What the outputs are, as digests of the expressions that make them: equal digests mean equal bits.
struct Outcome {
  std::vector<std::vector<std::uint64_t>> outputs;  // [rank][output chunk]

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Proves one plan, plain or lowered, for every size and interleaving:
//   - both ends of every channel agree, and every message is sent once and received once by each receiver;
//   - every output chunk is what the collective promises: each contribution exactly once, scaled and finished as the shape asks,
//     and on all ranks the same expression, hence the same bits;
//   - any two accesses to the same place, one of them a write, are ordered by lanes, dependencies or messages;
//   - stages never fall along a value, and are the same at both ends of a channel;
//   - no execution gets stuck with the given capacity and order.
// The failure names rank, lane and step.
Result<Outcome> verify(const Plan& plan, const VerifyRequest& request);

}  // namespace seto

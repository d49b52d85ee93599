#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/plan/hazards.h"
#include "src/plan/plan.h"
#include "src/plan/step_order.h"
#include "src/plan/symbolic.h"

namespace seto {

struct VerifyRequest {
  std::vector<InPlace> in_place;  // by rank; empty: not in place
  std::uint32_t capacity = 1;     // most messages of one channel under way
  StepOrder order = StepOrder::readiness;
  Chains chains = Chains::separate;
  std::uint32_t max_encodings = 2;  // most lossy encodings of a result
  // In a plain program a place keeps the encoded bytes of a value that was rounded or arrived coded. An engine has the bytes only
  // within a pass; a value that it sends later is encoded once more.
  bool places_keep_bytes = true;
  // The first encoding of each chunk on a rank of a lowered program adds a residual of that rank.
  bool residuals = false;
  // For local programs joined as one all_to_all: [from * ranks + to] is the number of messages in that direction. Chunks beyond
  // it belong to no message and must stay untouched. Empty for a collective, in which every chunk has a postcondition.
  std::vector<std::uint32_t> messages;
};

// The outputs as digests of the expressions that make them. Equal digests mean equal bits.
struct Outcome {
  std::vector<std::vector<std::uint64_t>> outputs;  // [rank][output chunk]

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Proves one plan, plain or lowered, for every size and interleaving:
//   - both ends of every channel agree, and every message is sent once and received once by each receiver;
//   - every output chunk holds each contribution exactly once, scaled and finished as the shape asks, and all ranks hold the same
//     expression, hence the same bits;
//   - any two accesses to the same place, one of them a write, are ordered by lanes, dependencies or messages;
//   - stages never fall along a value, and are the same at both ends of a channel;
//   - no execution gets stuck with the given capacity and order.
// The failure names rank, lane and step.
Result<Outcome> verify(const Plan& plan, const VerifyRequest& request);

}  // namespace seto

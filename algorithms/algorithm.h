#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/cost_form.h"
#include "src/plan/builder.h"
#include "src/topology/tiers.h"

namespace seto {

// The parts that each member of a group has at the end of a phase that scatters, or at the begin of a phase that gathers.
using Parts = std::vector<std::vector<Range>>;

// A constant row of the catalog. All functions are pure.
struct Algorithm {
  std::string_view name;
  Collective collective;
  // Empty if the plan exists for this shape on these tiers; else the reason why not, for `seto explain`.
  std::string (*refuses)(const Shape& shape, const Tiers& tiers);
  // The most encodings of a value on its way to an output, with the codec of this shape; 0: its messages cannot be coded.
  std::uint32_t (*encodings)(const Shape& shape, const Tiers& tiers);
  // Number of logical chunks of each part.
  std::uint32_t (*pieces)(const Shape& shape, const Tiers& tiers);
  void (*build)(Builder& builder, const Tiers& tiers);
  // The cost of the plan, if it is not refused.
  CostForm cost_form;
};

// An algorithm with more encodings runs only if the caller pins it.
inline constexpr std::uint32_t kMostEncodings = 2;

// Like refuses(), and for a shape with a codec also the reason why the algorithm cannot run with it.
std::string refusal_of(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers,
                       std::uint32_t most_encodings = kMostEncodings);

std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(std::string_view name, Collective collective);

// One rank's plain program.
Program build_program(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, Rank rank, InPlace in_place);
// The plain programs of all ranks: for the verifier and tools.
Plan build_plan(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, std::span<const InPlace> in_place);

}  // namespace seto

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/plan/builder.h"
#include "src/topology/tiers.h"

namespace seto {

// What each member of a group is to end up with, or begins with, in a phase that scatters or gathers.
using Parts = std::vector<std::vector<Range>>;

// A constant row of the catalog. All functions are pure.
struct Algorithm {
  std::string_view name;
  Collective collective;
  // Empty if the plan exists for this shape on these tiers; else the reason why not, for `seto explain`.
  std::string (*refuses)(const Shape& shape, const Tiers& tiers);
  // How often a value is encoded on its way to an output, at most, with the codec of this shape; 0: its messages cannot be coded.
  std::uint32_t (*encodings)(const Shape& shape, const Tiers& tiers);
  // Logical chunks a part.
  std::uint32_t (*pieces)(const Shape& shape);
  void (*build)(Builder& builder, const Tiers& tiers);
};

// More of them only where the caller asks for that algorithm.
inline constexpr std::uint32_t kMostEncodings = 2;

// As refuses(), and for a shape with a codec: why not with that.
std::string refusal_of(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers,
                       std::uint32_t most_encodings = kMostEncodings);

std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(std::string_view name, Collective collective);

// One rank's plain program.
Program build_program(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, Rank rank, InPlace in_place);
// All ranks': for the verifier and tools.
Plan build_plan(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, std::span<const InPlace> in_place);

}  // namespace seto

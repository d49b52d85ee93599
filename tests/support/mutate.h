#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "src/plan/plan.h"

// Small damage to a plan: what an author, a builder or a lowering gets wrong. Most of it is made with care, on both ends of a
// channel and with everything renumbered, so that it is not the structure that gives it away.
namespace seto::support {

struct Mutation {
  std::string_view name;
  // Damages one random place. False if the plan has none of that kind, or (at times) if chance chose one that is not.
  bool (*apply)(Plan& plan, std::mt19937_64& random);
};

const std::vector<Mutation>& mutations();

}  // namespace seto::support

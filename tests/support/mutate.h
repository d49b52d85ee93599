#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "src/plan/plan.h"

// Small damage to a plan, such as an error of an author, a builder or a lowering makes. Most mutations keep both ends of a
// channel and all numbers consistent, so that the structure does not reveal them.
namespace seto::support {

struct Mutation {
  std::string_view name;
  // Damages one random place. Returns false if the plan has no such place, or (at times) if the random choice was not one.
  bool (*apply)(Plan& plan, std::mt19937_64& random);
};

const std::vector<Mutation>& mutations();

}  // namespace seto::support

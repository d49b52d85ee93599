#include "tests/support/tries.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace seto::testing {
namespace {

constexpr int kMostTries = 5;

}  // namespace

std::string with_growing_time(const std::function<std::string(std::uint64_t ms)>& attempt,
                              std::initializer_list<std::uint64_t> times_ms) {
  std::string problem = "it was not tried";
  for (const std::uint64_t ms : times_ms) {
    problem = attempt(ms);
    if (problem.empty()) break;
    std::printf("not within %llu ms: %s\n", static_cast<unsigned long long>(ms), problem.c_str());
  }
  return problem;
}

std::string lacks(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return {};
  std::string problem = "there is no '";
  problem.append(part).append("' in '").append(text).append("'; ");
  return problem;
}

std::uint64_t least_of_tries(std::uint64_t limit, const std::function<std::uint64_t()>& measure) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int turn = 0; turn < kMostTries && least >= limit; ++turn) {
    least = std::min(least, measure());
    if (least >= limit)
      std::printf("try %d: %llu, not below %llu\n", turn + 1, static_cast<unsigned long long>(least),
                  static_cast<unsigned long long>(limit));
  }
  return least;
}

}  // namespace seto::testing

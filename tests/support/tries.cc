#include "tests/support/tries.h"

#include <cstdio>

namespace seto::testing {

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

}  // namespace seto::testing

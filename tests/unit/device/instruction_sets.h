#pragma once

#include <cstdint>
#include <vector>

// Order matters to highway.
// clang-format off
#include "src/device/simd.h"
#include "hwy/highway.h"
// clang-format on

namespace seto {

// Every instruction set that this machine can run and the library was built for.
inline std::vector<std::int64_t> instruction_sets() {
  std::vector<std::int64_t> sets;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) sets.push_back(left & -left);
  return sets;
}

// Makes highway choose one set, until the end of the scope.
class OnlySet final {
 public:
  explicit OnlySet(std::int64_t set) { choose(set); }
  ~OnlySet() { choose(0); }
  OnlySet(const OnlySet&) = delete;
  OnlySet& operator=(const OnlySet&) = delete;

 private:
  static void choose(std::int64_t set) {
    hwy::SetSupportedTargetsForTest(set);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace seto

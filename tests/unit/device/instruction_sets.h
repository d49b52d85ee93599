#pragma once

#include <cstdint>
#include <vector>

#include "src/device/instruction_sets.h"

namespace seto {

// Every instruction set that this machine can run and the library was built for.
inline std::vector<std::int64_t> instruction_sets() {
  std::vector<std::int64_t> sets;
  for (std::int64_t left = usable_sets(); left != 0; left &= left - 1) sets.push_back(left & -left);
  return sets;
}

// Makes the kernels use one set, until the end of the scope.
class OnlySet final {
 public:
  explicit OnlySet(std::int64_t set) { pretend_sets(set); }
  ~OnlySet() { pretend_sets(0); }
  OnlySet(const OnlySet&) = delete;
  OnlySet& operator=(const OnlySet&) = delete;
};

}  // namespace seto

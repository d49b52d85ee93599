#pragma once

#include <cstddef>
#include <vector>

namespace seto::command {

// The link from one site to another.
struct SitePair {
  std::size_t from = 0;
  std::size_t to = 0;
  friend bool operator==(const SitePair&, const SitePair&) = default;
};

// All links between sites, in steps: the links of a step are probed at the same time, so no site takes part in two of them. Both
// directions of a pair of sites follow each other.
std::vector<std::vector<SitePair>> probe_steps(std::size_t sites);

}  // namespace seto::command

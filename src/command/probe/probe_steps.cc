#include "src/command/probe/probe_steps.h"

#include <utility>

namespace seto::command {

// A tournament in which everyone meets everyone: the last site keeps its place and meets each other one in turn, and the others
// meet across a circle that turns by one place a round. With an odd number of sites the one that would meet the last is idle.
std::vector<std::vector<SitePair>> probe_steps(std::size_t sites) {
  std::vector<std::vector<SitePair>> steps;
  const std::size_t places = sites + sites % 2;
  for (std::size_t round = 0; round + 1 < places; ++round) {
    const std::size_t circle = places - 1;
    std::vector<SitePair> there;
    if (sites % 2 == 0) there.push_back({round, circle});
    for (std::size_t distance = 1; 2 * distance < places; ++distance)
      there.push_back({(round + distance) % circle, (round + circle - distance) % circle});
    std::vector<SitePair> back;
    for (const SitePair& pair : there) back.push_back({pair.to, pair.from});
    steps.push_back(std::move(there));
    steps.push_back(std::move(back));
  }
  return steps;
}

}  // namespace seto::command

#include "transports/rdma/verbs/device_distance.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace seto::rdma {
namespace {

constexpr int kMostNodes = 1'024;

// The numbers of a list like "0-3,8".
class Numbers {
 public:
  explicit Numbers(const std::string& list) {
    std::istringstream ranges(list);
    for (std::string range; std::getline(ranges, range, ',');) {
      std::istringstream numbers(range);
      int first = 0;
      if (!(numbers >> first)) continue;
      int last = first;
      if (char dash = 0; numbers >> dash) numbers >> last;
      ranges_.emplace_back(first, last);
    }
  }
  [[nodiscard]] bool has(int wanted) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [=](const auto& one) { return wanted >= one.first && wanted <= one.second; });
  }

 private:
  std::vector<std::pair<int, int>> ranges_;
};

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::uint8_t distance_of(const std::string& device, const std::vector<int>& processors, const std::string& sys) {
  int of_device = -1;
  if (!(std::ifstream(sys + "/class/infiniband/" + device + "/device/numa_node") >> of_device) || of_device < 0) return kNear;
  const std::string nodes = sys + "/devices/system/node/";
  const Numbers online(line_of(nodes + "online"));
  // The distances of a node stand in the order of the nodes that are online.
  std::optional<std::size_t> place;
  std::string distances;
  std::size_t count = 0;
  for (int node = 0; node < kMostNodes; ++node) {
    if (!online.has(node)) continue;
    const std::string folder = nodes + "node" + std::to_string(node);
    const Numbers list(line_of(folder + "/cpulist"));
    const auto here = std::count_if(processors.begin(), processors.end(), [&](int one) { return list.has(one); });
    if (here > 0 && static_cast<std::size_t>(here) < processors.size()) return kNear;
    if (here > 0) distances = line_of(folder + "/distance");
    if (node == of_device) place = count;
    ++count;
  }
  if (!place) return kNear;
  std::istringstream numbers(distances);
  unsigned distance = kNear;
  for (std::size_t each = 0; each <= *place; ++each)
    if (!(numbers >> distance)) return kNear;
  return static_cast<std::uint8_t>(std::clamp(distance, unsigned{kNear}, 255U));
}

std::vector<int> own_processors() {
  cpu_set_t set;
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &set)) all.push_back(processor);
  return all;
}

}  // namespace seto::rdma

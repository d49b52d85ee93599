#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace seto::slots {

// In place of the number of a NUMA node: it is not known, or does not matter.
inline constexpr int kAnyNode = -1;

// Addresses of one segment that are set aside for slots of one NUMA node each. The ranges are large: the kernel keeps a mapping
// of its own for each stretch of memory with another placement, and a process may have a limited number of them.
class NodeRanges {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t next = 0;  // where slots may still begin
    std::size_t end = 0;
    int node = kAnyNode;
  };

  // A range of that node with that much room, or of any node; null: there is none. Valid until the next call of add.
  [[nodiscard]] Range* with_room(std::size_t size, int node) {
    const auto found = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) {
      return (node == kAnyNode || range.node == node) && size <= range.end - range.next;
    });
    return found == ranges_.end() ? nullptr : &*found;
  }
  Range* add(std::size_t begin, std::size_t size, int node) {
    return &ranges_.emplace_back(Range{begin, begin, begin + size, node});
  }
  // The node for which these addresses are set aside, or kAnyNode.
  [[nodiscard]] int node_of(std::size_t offset) const {
    const auto found = std::find_if(ranges_.begin(), ranges_.end(),
                                    [&](const Range& range) { return range.begin <= offset && offset < range.end; });
    return found == ranges_.end() ? kAnyNode : found->node;
  }

 private:
  std::vector<Range> ranges_;
};

}  // namespace seto::slots

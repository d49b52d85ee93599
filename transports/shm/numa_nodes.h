#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace seto {

// A set of cores: its element says whether it has the core with that number.
using Cores = std::vector<bool>;

// The NUMA nodes of a machine that have memory, and their cores. A machine with one node counts as one without: no page of it can
// lie better or worse, so nothing is asked of the system.
class NumaNodes final {
 public:
  // The text of a file below /sys/devices/system/node; empty: there is no such file.
  using ReadFile = std::function<std::string(const std::string& name)>;

  explicit NumaNodes(const ReadFile& read);
  // The nodes of this machine, which are looked up once.
  static const NumaNodes& of_machine();

  // Whether the pages of a slot may be asked for on that node.
  [[nodiscard]] bool has(int node) const;
  // The node to which all these cores belong. slots::kAnyNode: there is none, so the thread may run on several nodes.
  [[nodiscard]] int node_of(const Cores& cores) const;

 private:
  struct Node {
    int number = 0;
    Cores cores;
  };
  std::vector<Node> nodes_;  // empty: the machine has one
};

// The cores on which the calling thread may run. Empty: the kernel does not tell.
[[nodiscard]] Cores cores_of_thread();

// Asks the kernel to take the pages of this memory from that node, as long as it has free ones. Only pages that do not exist yet
// follow. The memory is a mapping of a shared segment, so this holds for all processes that map it. A kernel that refuses (a
// sandbox may) puts them where it likes: the first refusal of a process is in its log.
void prefer_node(std::byte* begin, std::size_t size, int node);

}  // namespace seto

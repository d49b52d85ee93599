#include "transports/shm/numa_nodes.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "transports/slots/node_ranges.h"

namespace seto {
namespace {

// As many as Linux can be built for on x86.
constexpr std::size_t kMostNodes = 1'024;
constexpr std::size_t kMostCores = 8'192;

std::string file_of_machine(const std::string& name) {
  std::FILE* const file = std::fopen(("/sys/devices/system/node/" + name).c_str(), "re");
  if (file == nullptr) return {};
  std::array<char, 4096> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size(), file);
  std::fclose(file);
  return {text.data(), size};
}

// A list as the kernel writes it: "0-3,8\n". Parts that are no numbers below the limit are left out.
std::vector<std::size_t> numbers_in(std::string_view list, std::size_t limit) {
  std::vector<std::size_t> numbers;
  while (!list.empty() && list.back() == '\n') list.remove_suffix(1);
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const auto first = parse_uint(part.substr(0, part.find('-')));
    const auto last = part.find('-') == std::string_view::npos ? first : parse_uint(part.substr(part.find('-') + 1));
    if (!first || !last || *last >= limit) continue;
    for (std::size_t number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

NumaNodes::NumaNodes(const ReadFile& read) {
  const std::vector<std::size_t> numbers = numbers_in(read("has_memory"), kMostNodes);
  if (numbers.size() < 2) return;
  for (const std::size_t number : numbers) {
    Node node{static_cast<int>(number), {}};
    for (const std::size_t core : numbers_in(read("node" + std::to_string(number) + "/cpulist"), kMostCores)) {
      if (node.cores.size() <= core) node.cores.resize(core + 1);
      node.cores[core] = true;
    }
    nodes_.push_back(std::move(node));
  }
}

const NumaNodes& NumaNodes::of_machine() {
  static const NumaNodes nodes(file_of_machine);
  return nodes;
}

bool NumaNodes::has(int node) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& each) { return each.number == node; });
}

int NumaNodes::node_of(const Cores& cores) const {
  if (std::find(cores.begin(), cores.end(), true) == cores.end()) return slots::kAnyNode;
  for (const Node& node : nodes_) {
    bool all = true;
    for (std::size_t core = 0; core < cores.size(); ++core)
      all = all && (!cores[core] || (core < node.cores.size() && node.cores[core]));
    if (all) return node.number;
  }
  return slots::kAnyNode;
}

Cores cores_of_thread() {
  std::array<cpu_set_t, kMostCores / CPU_SETSIZE> permitted{};
  Cores cores;
  if (sched_getaffinity(0, sizeof permitted, permitted.data()) != 0) return cores;
  for (std::size_t core = 0; core < kMostCores; ++core)
    if (CPU_ISSET_S(core, sizeof permitted, permitted.data())) {
      cores.resize(core + 1);
      cores[core] = true;
    }
  return cores;
}

// The system call itself: its wrapper is in a library that not every machine has.
void prefer_node(std::byte* begin, std::size_t size, int node) {
  static std::atomic<bool> told{false};
  constexpr std::size_t kBits = sizeof(unsigned long) * 8;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  const auto number = static_cast<std::size_t>(node);
  SETO_CHECK(node >= 0 && number < kMostNodes);
  mask[number / kBits] = 1UL << number % kBits;
  // The kernel reads one bit less than it is told.
  if (syscall(SYS_mbind, begin, size, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0U) == 0) return;
  if (told.exchange(true)) return;
  SETO_LOG(info,
           "slots of shared memory are not placed on the NUMA node of their reader: mbind for node %d: %s; allow mbind in the "
           "sandbox if calls between NUMA nodes are slow",
           node, std::generic_category().message(errno).c_str());
}

}  // namespace seto

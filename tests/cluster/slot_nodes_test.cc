// Where the kernel of this machine puts the slots of two ranks that are bound to different NUMA nodes, if it has two.

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

const std::string kNodes = "/sys/devices/system/node/";

bool several_nodes() {
  std::string list;
  std::ifstream(kNodes + "has_memory") >> list;
  return list.find_first_of(",-") != std::string::npos;
}

// A core of that node on which this process may run; -1: there is none.
int core_of(int node) {
  std::ifstream list(kNodes + "node" + std::to_string(node) + "/cpulist");
  int core = -1;
  cpu_set_t set;
  CPU_ZERO(&set);
  return list >> core && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(core, &set) ? core : -1;
}

// A sandbox may refuse to tell, and to place pages.
bool may_place_on_both() {
  std::array<unsigned long, 16> nodes{};
  return syscall(SYS_get_mempolicy, nullptr, nodes.data(), nodes.size() * 64 + 1, nullptr, MPOL_F_MEMS_ALLOWED) == 0 &&
         (nodes[0] & 3) == 3;
}

void bind_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// The pages of shared memory that this process has placed, by the node that it asked for and the node on which they lie.
std::map<int, std::map<int, long>> placed_pages() {
  std::map<int, std::map<int, long>> pages;
  std::ifstream maps("/proc/self/numa_maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t policy = line.find(" prefer:");
    if (policy == std::string::npos || line.find("memfd:seto") == std::string::npos) continue;
    auto& of_policy = pages[std::atoi(line.c_str() + policy + 8)];
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      int node = 0;
      long count = 0;
      if (std::sscanf(word.c_str(), "N%d=%ld", &node, &count) == 2) of_policy[node] += count;
    }
  }
  return pages;
}

// `look` is called while the communicator still has its slots.
template <class Look>
void sum_long_vectors(const Seat& seat, const Look& look) {
  const setoComm_t comm = seat.join();
  ASSERT_NE(comm, nullptr);
  expect_works(comm, seat);
  std::vector<float> values(std::size_t{1} << 18, 1.0F);
  ASSERT_EQ(answer(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr)).text, "");
  EXPECT_EQ(values, std::vector<float>(values.size(), 2.0F));
  look();
  EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
}

TEST(SlotNodes, SlotsLieOnTheNodeOfTheirReader) {
  if (!several_nodes() || core_of(0) < 0 || core_of(1) < 0 || !may_place_on_both())
    GTEST_SKIP() << "skipped: needs the first core and memory of the NUMA nodes 0 and 1 (./dev lab rdma --nodes 2 has them)";
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    bind_to(core_of(seat.rank));
    sum_long_vectors(seat, [&] {
      const auto pages = placed_pages();
      const int reader = 1 - seat.rank;
      ASSERT_EQ(pages.size(), 1U) << "one other rank, so one node";
      ASSERT_EQ(pages.begin()->first, reader);
      ASSERT_EQ(pages.begin()->second.size(), 1U) << "pages lie on several nodes";
      EXPECT_EQ(pages.begin()->second.begin()->first, reader);
      EXPECT_GE(pages.begin()->second.begin()->second * 4096, 256 << 10);
    });
  });
}

TEST(SlotNodes, AMachineWithOneNodeIsAskedForNothing) {
  if (several_nodes()) GTEST_SKIP() << "skipped: needs a machine with one NUMA node";
  run_ranks(Kind::processes, 2, [](const Seat& seat) { sum_long_vectors(seat, [] { EXPECT_TRUE(placed_pages().empty()); }); });
}

}  // namespace
}  // namespace seto::testing

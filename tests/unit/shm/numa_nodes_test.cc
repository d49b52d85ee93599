#include "transports/shm/numa_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <string>

#include "src/base/log.h"
#include "tests/support/child_process.h"
#include "transports/shm/segment.h"
#include "transports/slots/node_ranges.h"

namespace seto {
namespace {

using slots::kAnyNode;
using testing::ChildProcess;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

NumaNodes nodes_of(const std::map<std::string, std::string>& files) {
  return NumaNodes([&](const std::string& name) {
    const auto found = files.find(name);
    return found == files.end() ? std::string() : found->second;
  });
}

Cores cores(std::initializer_list<std::size_t> numbers) {
  Cores set;
  for (const std::size_t number : numbers) {
    if (set.size() <= number) set.resize(number + 1);
    set[number] = true;
  }
  return set;
}

NumaNodes two_sockets() {
  return nodes_of({{"has_memory", "0-1\n"}, {"node0/cpulist", "0-3,8-11\n"}, {"node1/cpulist", "4-7,12-15\n"}});
}

TEST(NumaNodes, TheNodeHasAllCoresOfTheThread) {
  const NumaNodes nodes = two_sockets();
  EXPECT_EQ(nodes.node_of(cores({0})), 0);
  EXPECT_EQ(nodes.node_of(cores({3, 8, 11})), 0);
  EXPECT_EQ(nodes.node_of(cores({4, 15})), 1);
  EXPECT_EQ(nodes.node_of(cores({3, 4})), kAnyNode) << "it may run on both";
  EXPECT_EQ(nodes.node_of(cores({5, 99})), kAnyNode) << "no node has core 99";
  EXPECT_EQ(nodes.node_of({}), kAnyNode) << "the kernel tells nothing";
  EXPECT_TRUE(nodes.has(0));
  EXPECT_TRUE(nodes.has(1));
  EXPECT_FALSE(nodes.has(2));
  EXPECT_FALSE(nodes.has(kAnyNode));
}

TEST(NumaNodes, OneNodeCountsAsNone) {
  for (const char* list : {"0\n", "", "x", "0,y"}) {
    const NumaNodes nodes = nodes_of({{"has_memory", list}, {"node0/cpulist", "0-7\n"}});
    EXPECT_EQ(nodes.node_of(cores({0})), kAnyNode) << list;
    EXPECT_FALSE(nodes.has(0)) << list;
  }
}

// Memory that is far from all cores (CXL), and a node whose number is not the next.
TEST(NumaNodes, ANodeMayLackCores) {
  const NumaNodes nodes =
      nodes_of({{"has_memory", "0,2-3\n"}, {"node0/cpulist", "0-1\n"}, {"node2/cpulist", "\n"}, {"node3/cpulist", "2\n"}});
  EXPECT_EQ(nodes.node_of(cores({2})), 3);
  EXPECT_TRUE(nodes.has(2));
  EXPECT_FALSE(nodes.has(1));
}

TEST(NumaNodes, TheThreadHasCores) {
  const Cores own = cores_of_thread();
  EXPECT_EQ(std::count(own.begin(), own.end(), true), [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  }());
}

// ---- the kernel of this machine ----

// The node of the page there, which exists; -1: the kernel does not tell.
int node_of_page(const std::byte* page) {
  int node = -1;
  return syscall(SYS_get_mempolicy, &node, nullptr, 0, page, MPOL_F_NODE | MPOL_F_ADDR) == 0 ? node : -1;
}

struct Policy {
  int mode = -1;
  unsigned long nodes = 0;  // the first 64
};
Policy policy_of(const std::byte* page) {
  Policy policy;
  std::array<unsigned long, 16> nodes{};
  if (syscall(SYS_get_mempolicy, &policy.mode, nodes.data(), nodes.size() * 64 + 1, page, MPOL_F_ADDR) != 0) return {};
  policy.nodes = nodes[0];
  return policy;
}

// Covers each node where the machine has several.
TEST(PreferNode, PagesLieOnTheNodeThatWasAskedFor) {
  auto segment = Segment::create({.size = 64 * kMiB});
  ASSERT_TRUE(segment.ok()) << segment.status().text();
  auto theirs = Segment::map(segment->fd(), kSegmentSize);
  ASSERT_TRUE(theirs.ok()) << theirs.status().text();
  if (policy_of(segment->data()).mode < 0)
    GTEST_SKIP() << "skipped: needs get_mempolicy, which this kernel lacks or a sandbox refuses";
  int nodes = 0;
  for (int node = 0; node < 8; ++node) {
    if (access(("/sys/devices/system/node/node" + std::to_string(node)).c_str(), F_OK) != 0) continue;
    ++nodes;
    const std::uint64_t at = static_cast<std::uint64_t>(node) * 4 * kMiB;
    prefer_node(segment->data() + at, 4 * kMiB, node);
    const Policy policy = policy_of(segment->data() + at);
    EXPECT_EQ(policy.mode, MPOL_PREFERRED);
    EXPECT_EQ(policy.nodes, 1UL << node);
    EXPECT_EQ(segment->populated(), static_cast<std::uint64_t>(nodes - 1) * 2 * kMiB) << "no page was made";
    ASSERT_TRUE(segment->populate(at, 2 * kMiB).ok());
    for (std::uint64_t page = at; page < at + 2 * kMiB; page += kMiB / 2) {
      segment->data()[page] = std::byte{1};
      EXPECT_EQ(node_of_page(segment->data() + page), node);
      EXPECT_EQ(theirs->data()[page], std::byte{1});
      EXPECT_EQ(node_of_page(theirs->data() + page), node) << "as a peer maps it";
    }
    theirs->data()[at + 3 * kMiB] = std::byte{1};
    EXPECT_EQ(node_of_page(theirs->data() + at + 3 * kMiB), node) << "a page that a peer touches first";
    ASSERT_TRUE(segment->release(at + 3 * kMiB, kSegmentPage).ok());
  }
  EXPECT_GE(nodes, 1);
  EXPECT_EQ(policy_of(segment->data() + 63 * kMiB).mode, MPOL_DEFAULT) << "where no node was asked for";
}

// Refuses mbind for this process, as sandboxes do.
bool refuse_mbind() {
  std::array<sock_filter, 4> program{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_mbind},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(PreferNode, ARefusalIsSaidOnceAndIgnored) {
  ChildProcess child([] {
    if (!refuse_mbind()) return false;
    set_log_level(LogLevel::info);
    const LogCapture log;
    auto segment = Segment::create({.size = 8 * kMiB});
    if (!segment.ok()) return false;
    for (std::uint64_t at = 0; at < 4 * kMiB; at += kMiB) {
      prefer_node(segment->data() + at, kMiB, 0);
      EXPECT_TRUE(segment->populate(at, kMiB).ok());
      segment->data()[at] = std::byte{1};
    }
    EXPECT_EQ(log.lines().size(), 1U);
    EXPECT_TRUE(log.contains("mbind for node 0: Operation not permitted; allow mbind"));
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto

#include "tests/support/slowness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "tests/support/child_process.h"

namespace seto::testing {
namespace {

constexpr int kProcesses = 4;
constexpr int kRounds = 1000;
constexpr std::size_t kBytes = 64 << 10;
constexpr double kMost = 2;       // a limit that grew without end would never be missed
constexpr double kUsualMs = 150;  // two idle cores of an AMD EPYC: 130 to 180

// Makes memory and sockets, as a process that joins a job does.
bool work() {
  for (int round = 0; round < kRounds; ++round) {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED || munmap(memory, kBytes) != 0) return false;
    std::array<int, 2> ends{};
    char byte = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return false;
    const bool arrived = write(ends[0], &byte, 1) == 1 && read(ends[1], &byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    if (!arrived) return false;
  }
  return true;
}

}  // namespace

double slowness() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<ChildProcess> children;
  for (int i = 0; i < kProcesses; ++i) children.emplace_back(work);
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return std::clamp(took.count() / kUsualMs, 1.0, kMost);
}

}  // namespace seto::testing

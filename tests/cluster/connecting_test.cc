// One rank cannot connect: all ranks soon fail with the reason.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/ranks.h"
#include "tests/support/tries.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 4;
constexpr std::uint32_t kInitMs = 20'000;  // a rank that waited for its deadline would need 18 s

// Gathers through the job's board of shared memory. In between, the rank that must fail uses up its last descriptors.
struct Exchange {
  const Seat& seat;
  std::uint64_t round = 100;
  bool fails = false;
  std::vector<int> hoard;
};

struct Pages {
  char bytes[kRanks][4096];
};

Pages* pages() {
  static Pages* const shared = [] {
    void* const memory = mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Pages;
  }();
  return shared;
}

int gather(const void* mine, void* all, std::size_t size, void* argument) {
  Exchange& exchange = *static_cast<Exchange*>(argument);
  const Seat& seat = exchange.seat;
  if (size > sizeof pages()->bytes[0]) return 1;
  std::memcpy(pages()->bytes[seat.rank], mine, size);
  if (!seat.meet(++exchange.round)) return 2;
  for (int rank = 0; rank < seat.ranks; ++rank)
    std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(rank) * size, pages()->bytes[rank], size);
  if (!seat.meet(++exchange.round)) return 3;
  // Two calls make the first round. Only the descriptors that the listener reserves for this case are left.
  if (exchange.fails && exchange.round == 104)
    for (int fd = dup(0); fd >= 0; fd = dup(0)) exchange.hoard.push_back(fd);
  return 0;
}

class Connecting : public ::testing::TestWithParam<int> {};

// Returns the time of the slowest rank.
double seconds_until_all_ranks_fail(int culprit) {
  Job job(Kind::processes, kRanks, [culprit](const Seat& seat) {
    Exchange exchange{seat, 100, seat.rank == culprit, {}};
    if (exchange.fails) {
      const rlimit few{64, 64};
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    setoConfig_t config = config_of_test();
    config.initTimeoutMs = kInitMs;
    config.bootstrap.allGather = gather;
    config.bootstrap.argument = &exchange;
    setoComm_t comm = nullptr;
    const std::uint64_t begin = monotonic_ns();
    const Answer made = answer(setoCommInitRankConfig(&comm, seat.ranks, setoUniqueId{}, seat.rank, &config));
    const double seconds = static_cast<double>(monotonic_ns() - begin) / 1e9;
    for (const int fd : exchange.hoard) close(fd);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(made.code, seat.rank == culprit ? setoSystemError : setoRemoteError) << "rank " << seat.rank << ": " << made;
    EXPECT_TRUE(made.says("rank " + std::to_string(culprit) + " could not connect")) << "rank " << seat.rank << ": " << made;
    EXPECT_TRUE(made.says("out of file descriptors")) << "rank " << seat.rank << ": " << made;
    std::printf("rank %d after %.3f s: %s\n", seat.rank, seconds, made.text.c_str());
    seat.board.time_ns[static_cast<std::size_t>(seat.rank)] = static_cast<std::uint64_t>(seconds * 1e9);
    std::snprintf(pages()->bytes[seat.rank], sizeof pages()->bytes[0], "%s", made.text.c_str());
    ASSERT_TRUE(seat.meet(1000));
    for (int other = 0; other < seat.ranks; ++other)
      EXPECT_EQ(made.text, pages()->bytes[other]) << "ranks " << seat.rank << " and " << other;
  });
  job.finish();
  std::uint64_t slowest_ns = 0;
  for (const auto& one : job.board().time_ns) slowest_ns = std::max(slowest_ns, one.load());
  return static_cast<double>(slowest_ns) / 1e9;
}

TEST_P(Connecting, FailsOnAllRanksWithTheSameTextWithinASecond) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "skipped: the sanitizer's own checks need descriptors";
#endif
  ASSERT_NE(pages(), nullptr);
  EXPECT_LT(least_of(3, 1, [] { return seconds_until_all_ranks_fail(GetParam()); }), 1);
}

INSTANTIATE_TEST_SUITE_P(Cluster, Connecting, ::testing::Range(0, kRanks),
                         [](const auto& one) { return "Rank" + std::to_string(one.param); });

// A limit that leaves no room for the board is detected before any rank connects.
TEST(Joining, WithoutMemoryForABoardFailsOnAllRanks) {
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    if (seat.rank == 2) setenv("SETO_SHARED_MEMORY_LIMIT", "64K", 1);
    setoComm_t comm = nullptr;
    setoConfig_t config = config_of_test();
    const std::uint64_t begin = monotonic_ns();
    const Answer made = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(made.code, seat.rank == 2 ? setoSystemError : setoRemoteError) << made;
    EXPECT_TRUE(made.says("rank 2 could not connect: ")) << made;
    EXPECT_TRUE(made.says("SETO_SHARED_MEMORY_LIMIT")) << made;
    EXPECT_LT(static_cast<double>(monotonic_ns() - begin) / 1e9, 10) << "the deadline of the init is 20 s";
    seat.meet(1);
  });
}

}  // namespace
}  // namespace seto::testing

// The cost of communicators in time and memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "src/core/connect/context.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "tests/support/slowness.h"
#include "tests/support/tries.h"
#include "transports/shm/contexts_of_process.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 4;
constexpr int kCommunicators = 100;

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

double ms_since(std::uint64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) / 1e6; }

// KiB of private memory of the process, without shared pages.
std::uint64_t anonymous_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string row; std::getline(rollup, row);)
    if (unsigned long kib = 0; std::sscanf(row.c_str(), "Anonymous: %lu", &kib) == 1) return kib;
  return 0;
}

std::uint64_t segment_kib(setoComm_t comm) {
  return ContextsOfProcess::instance().find(context_of(comm).id())->segment.populated() / 1024;
}

void use(setoComm_t comm, int ranks) {
  float value = 1;
  const Answer done = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
  ASSERT_EQ(done.code, setoSuccess) << done;
  ASSERT_EQ(value, static_cast<float>(ranks));
}

#ifdef SETO_SANITIZED
constexpr double kMakeMs = 60'000;
#else
constexpr double kMakeMs = 1000;
#endif
constexpr int kTries = 5;

// The time of the slowest rank.
double slowest_ms(Job& job) {
  std::uint64_t slowest_ns = 0;
  for (const auto& one : job.board().time_ns) slowest_ns = std::max(slowest_ns, one.load());
  return static_cast<double>(slowest_ns) / 1e6;
}

// As users make them: an id for each, and a context for each or one that all communicators of a rank share.
class HundredCommunicators : public ::testing::TestWithParam<std::tuple<Kind, bool>> {};

double ms_of_a_hundred(Kind kind, bool shared) {
  Job job(kind, kRanks, [&](const Seat& seat) {
    setoContext_t context = nullptr;
    if (shared) {
      ASSERT_EQ(setoContextCreate(&context, nullptr), setoSuccess);
    }
    std::vector<setoComm_t> comms(kCommunicators);
    (void)seat.id();
    seat.meet(1);
    const std::uint64_t begin_ns = now_ns();
    for (int i = 0; i < kCommunicators; ++i) {
      setoConfig_t config = config_of_test();
      config.context = context;
      // The job's board carries one id after another.
      if (i > 0) {
        if (seat.rank == 0) {
          ASSERT_EQ(setoGetUniqueId(&seat.board.id), setoSuccess);
        }
        ASSERT_TRUE(seat.meet(static_cast<std::uint64_t>(2 * i)));
      }
      setoUniqueId id = seat.board.id;
      ASSERT_TRUE(seat.meet(static_cast<std::uint64_t>(2 * i + 1)));
      const Answer made = answer(setoCommInitRankConfig(&comms[static_cast<std::size_t>(i)], kRanks, id, seat.rank, &config));
      ASSERT_EQ(made.code, setoSuccess) << "communicator " << i << ", rank " << seat.rank << ": " << made;
      use(comms[static_cast<std::size_t>(i)], kRanks);
    }
    const double took_ms = ms_since(begin_ns);
    seat.board.time_ns[static_cast<std::size_t>(seat.rank)] = now_ns() - begin_ns;
    if (seat.rank == 0)
      std::printf("%d communicators of %d %s, %s: %.0f ms\n", kCommunicators, kRanks, name_of(kind).c_str(),
                  shared ? "one context for each rank" : "one context for each communicator", took_ms);
    for (setoComm_t comm : comms) EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    if (context != nullptr) {
      EXPECT_EQ(setoContextDestroy(context), setoSuccess);
    }
  });
  job.finish();
  return slowest_ms(job);
}

// The limit is a second on a machine that is as fast as usual, because the kernel does most of the work.
TEST_P(HundredCommunicators, AreMadeAndUsedInASecond) {
  const auto measure = [kind = std::get<0>(GetParam()), shared = std::get<1>(GetParam())] {
    const double before = slowness();
    const double took_ms = ms_of_a_hundred(kind, shared);
    const double slow = std::max(before, slowness());
    std::printf("the machine is %.2f times as slow as usual\n", slow);
    std::fflush(stdout);  // else each process of the next try prints it again
    return took_ms / slow;
  };
  EXPECT_LT(least_of(kTries, kMakeMs, measure), kMakeMs);
}

INSTANTIATE_TEST_SUITE_P(Cluster, HundredCommunicators,
                         ::testing::Combine(::testing::Values(Kind::processes, Kind::threads), ::testing::Bool()),
                         [](const auto& one) {
                           return name_of(std::get<0>(one.param)) + (std::get<1>(one.param) ? "SharedContext" : "OwnContexts");
                         });

constexpr std::uint64_t kMostKib = 2048;

TEST(CommunicatorMemory, IsUnderTwoMebibytesForEachRank) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: the memory of the process includes the shadow memory of sanitizers";
#endif
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    // The first communicator adds what the process has once: threads, tables, the allocator's arenas.
    const std::uint64_t before_all = anonymous_kib();
    const setoComm_t first = seat.join();
    ASSERT_NE(first, nullptr);
    use(first, seat.ranks);
    const std::uint64_t after_first = anonymous_kib();
    if (seat.rank == 0)
      std::printf("the first: %llu KiB of its own, %llu KiB shared\n", static_cast<unsigned long long>(after_first - before_all),
                  static_cast<unsigned long long>(segment_kib(first)));
    EXPECT_LT(after_first - before_all + segment_kib(first), kMostKib);
    constexpr std::uint64_t kMore = 10;
    std::vector<setoComm_t> more(kMore);
    std::uint64_t shared_kib = 0;
    for (std::size_t i = 0; i < kMore; ++i) {
      ASSERT_EQ(setoCommSplit(first, 0, seat.rank, &more[i], nullptr), setoSuccess) << setoGetLastError(nullptr);
      use(more[i], seat.ranks);
    }
    shared_kib = segment_kib(first);
    const std::uint64_t own = (anonymous_kib() - after_first) / kMore;
    if (seat.rank == 0)
      std::printf("each of %llu more in its context: %llu KiB of its own; %llu KiB shared by all\n",
                  static_cast<unsigned long long>(kMore), static_cast<unsigned long long>(own),
                  static_cast<unsigned long long>(shared_kib));
    EXPECT_LT(own + shared_kib / (kMore + 1), kMostKib);
    for (setoComm_t comm : more) EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    EXPECT_EQ(setoCommDestroy(first), setoSuccess);
  });
}

double ms_of_a_first_call(std::size_t bytes) {
  Job job(Kind::processes, kRanks, [bytes](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(bytes / 4, 1.0F);
    seat.meet(1);
    const std::uint64_t begin_ns = now_ns();
    ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr), setoSuccess);
    seat.board.time_ns[static_cast<std::size_t>(seat.rank)] = now_ns() - begin_ns;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  job.finish();
  return slowest_ms(job);
}

// The first call binds a plan, allocates its memory and may calibrate the links.
TEST(FirstCall, IsPrintedAndBounded) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
#ifdef SETO_SANITIZED
    const double most_ms = std::numeric_limits<double>::max();
#else
    const double most_ms = bytes == 8 ? 10 : 100;
#endif
    const double took_ms = least_of(kTries, most_ms, [bytes] { return ms_of_a_first_call(bytes); });
    std::printf("first all_reduce of %zu B between %d processes: %.2f ms\n", bytes, kRanks, took_ms);
    EXPECT_LT(took_ms, most_ms);
  }
}

}  // namespace
}  // namespace seto::testing

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/bootstrap/providers/single_rank.h"
#include "src/core/call/collective_call.h"
#include "src/core/launch/launch_cache.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

void lower_limit(int resource, rlim_t value) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(static_cast<__rlimit_resource>(resource), &limit), 0);
  limit.rlim_cur = value;
  ASSERT_EQ(setrlimit(static_cast<__rlimit_resource>(resource), &limit), 0);
}

class Descriptors : public ::testing::TestWithParam<Kind> {};

TEST_P(Descriptors, SixtyFourSufficeForFourRanks) {
  run_ranks(GetParam(), 4, [](const Seat& seat) {
    lower_limit(RLIMIT_NOFILE, 64);
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    std::vector<float> values(4 << 20, 1.0F);
    EXPECT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, Descriptors, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

// At every limit at which descriptors run out, the rank that has none fails with an error that says so, and the others name it.
TEST(DescriptorsRunOut, IsNamedOnEveryRank) {
  for (rlim_t limit = 6; limit <= 24; limit += 2) {
    run_ranks(Kind::processes, 3, [limit](const Seat& seat) {
      setoConfig_t config = config_of_test();
      config.initTimeoutMs = 4000;
      const setoUniqueId id = seat.id();
      seat.meet(1);
      if (seat.rank == 1) lower_limit(RLIMIT_NOFILE, limit);
      setoComm_t comm = nullptr;
      const Answer made = answer(setoCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config));
      seat.board.figure[static_cast<std::size_t>(seat.rank)] = made.code == setoSuccess ? 1 : 2;
      if (seat.rank == 1 && made.code != setoSuccess) {
        EXPECT_EQ(made.code, setoSystemError) << limit << ": " << made;
        EXPECT_TRUE(made.says("descriptor") || made.says("Too many open files")) << limit << ": " << made;
      }
      seat.meet(2);
      EXPECT_EQ(seat.board.figure[0].load(), seat.board.figure[static_cast<std::size_t>(seat.rank)].load())
          << limit << ": all or none have a communicator: " << made;
      if (seat.rank != 1 && made.code != setoSuccess) {
        EXPECT_TRUE(made.says("rank 1")) << limit << ", rank " << seat.rank << ": " << made;
      }
      if (comm == nullptr) return;
      expect_works(comm, seat);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
  }
}

// A rank's segment has a limit. Small operations continue, a large one fails with the reason, and every call ends.
class SharedMemory : public ::testing::TestWithParam<Kind> {};

TEST_P(SharedMemory, ExhaustedIsNamedOnEveryRank) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    (void)seat.id();
    if (seat.rank == 0) setenv("SETO_SHARED_MEMORY_LIMIT", "256K", 1);
    seat.meet(1);
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    float value = 1;
    EXPECT_EQ(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_EQ(value, 3.0F);
    std::vector<float> values(16 << 20, 1.0F);
    const Answer heard = answer(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr));
    EXPECT_TRUE(heard.code == setoSystemError || heard.code == setoRemoteError) << "rank " << seat.rank << ": " << heard;
    EXPECT_TRUE(heard.says("shared memory") || heard.says("rank")) << heard;
    if (heard.code == setoSystemError) {
      EXPECT_TRUE(heard.says("limit")) << heard;
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, SharedMemory, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

TEST(SharedMemoryLimits, TooLittleForAnyCallIsNamedAtInit) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    (void)seat.id();
    if (seat.rank == 1) lower_limit(RLIMIT_FSIZE, 1 << 20);
    setoConfig_t config = config_of_test();
    setoComm_t comm = nullptr;
    const Answer made = answer(setoCommInitRankConfig(&comm, 2, seat.id(), seat.rank, &config));
    EXPECT_NE(made.code, setoSuccess);
    EXPECT_TRUE(made.says(seat.rank == 1 ? "ulimit -f" : "rank 1")) << "rank " << seat.rank << ": " << made;
    seat.meet(1);
  });
}

TEST(SharedMemoryLimits, MissingAddressSpaceIsNamedAtInit) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: sanitizers reserve more address space than such a limit allows";
#endif
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    (void)seat.id();
    if (seat.rank == 1) lower_limit(RLIMIT_AS, rlim_t{2} << 30);
    setoConfig_t config = config_of_test();
    setoComm_t comm = nullptr;
    const Answer made = answer(setoCommInitRankConfig(&comm, 2, seat.id(), seat.rank, &config));
    EXPECT_NE(made.code, setoSuccess);
    EXPECT_TRUE(made.says(seat.rank == 1 ? "ulimit -v" : "rank 1")) << "rank " << seat.rank << ": " << made;
    seat.meet(1);
  });
}

// Otherwise a program with many sizes would fill the memory. The tasks of a communicator say when their operations have ended.
TEST(CommunicatorShapes, AreBounded) {
  SingleRankBootstrap bootstrap;
  Result<std::shared_ptr<Communicator>> made = make_communicator(bootstrap, {}, nullptr);
  ASSERT_TRUE(made.ok()) << made.status().text();
  Communicator& communicator = *made.value();
  std::vector<float> data(2 * LaunchCache::kMostShapes, 1);
  for (std::uint64_t count = 1; count <= data.size(); ++count) {
    Call call;
    call.input = call.output = data.data();
    call.count = count;
    const Status status = run(communicator, call);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  EXPECT_EQ(shapes_kept_by(communicator), LaunchCache::kMostShapes);
}

}  // namespace
}  // namespace seto::testing

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "src/api/support/handles.h"
#include "tests/support/ranks.h"
#include "tests/support/tries.h"

namespace seto::testing {
namespace {

constexpr std::size_t kSmall = 2;
constexpr int kTries = 3;  // of a time, because other programs may take the processor away
#ifdef SETO_SANITIZED
constexpr double kNoticeMs = 5000;  // for instrumented code on shared cores
constexpr std::size_t kLarge = std::size_t{2} << 20;
constexpr std::uint64_t kSmallCalls = 100;
#else
constexpr double kNoticeMs = 1000;
constexpr std::size_t kLarge = std::size_t{16} << 20;  // 64 MiB of floats
constexpr std::uint64_t kSmallCalls = 1000;
#endif

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// Repeats the operation until it fails, counts, and returns the failure with its time.
Answer repeat(const std::function<setoResult_t()>& operation, const Seat& seat) {
  const auto rank = static_cast<std::size_t>(seat.rank);
  for (;;) {
    const Answer one = answer(operation());
    if (one.code != setoSuccess) {
      seat.board.time_ns[rank] = now_ns();
      return one;
    }
    seat.board.counter[rank].fetch_add(1, std::memory_order_release);
  }
}

void expect_named(const Answer& heard, const Seat& seat, int lost) {
  EXPECT_EQ(heard.code, setoRemoteError) << "rank " << seat.rank << ": " << heard;
  EXPECT_TRUE(heard.says("rank " + std::to_string(lost))) << "rank " << seat.rank << ": " << heard;
}

// Returns the time after which the slowest rank had reported the failure.
std::uint64_t slowest_ms(Job& job, int ranks, int lost, std::uint64_t since_ns) {
  std::uint64_t slowest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == lost) continue;
    const std::uint64_t at = job.board().time_ns[static_cast<std::size_t>(rank)];
    EXPECT_GT(at, since_ns) << "rank " << rank << " failed before the fault, or never";
    if (at > since_ns) slowest = std::max(slowest, (at - since_ns) / 1'000'000);
  }
  return slowest;
}

using Parameters = std::tuple<int, int, std::size_t>;  // ranks, lost rank, count
class KilledRank : public ::testing::TestWithParam<Parameters> {};

double ms_until_a_killed_rank_is_named(const Parameters& parameters) {
  const auto [ranks, lost, count] = parameters;
  Job job(Kind::processes, ranks, [&, count = count, lost = lost](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> in(count, 1.0F);
    std::vector<float> out(count);
    const Answer heard =
        repeat([&] { return setoAllReduce(in.data(), out.data(), count, setoFloat32, setoSum, comm, nullptr); }, seat);
    expect_named(heard, seat, lost);
    const Answer again = answer(setoAllReduce(in.data(), out.data(), count, setoFloat32, setoSum, comm, nullptr));
    EXPECT_EQ(again.text, heard.text) << "the first reason stays";
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  EXPECT_TRUE(job.reached(lost, count == kSmall ? kSmallCalls : 3));
  const std::uint64_t killed_ns = now_ns();
  job.kill(lost);
  job.finish();
  const std::uint64_t took_ms = slowest_ms(job, ranks, lost, killed_ns);
  std::printf("%d ranks, %zu B: all others named rank %d within %llu ms\n", ranks, count * sizeof(float), lost,
              static_cast<unsigned long long>(took_ms));
  return static_cast<double>(took_ms);
}

TEST_P(KilledRank, IsNamedByAllOthersWithinASecond) {
  EXPECT_LT(least_of(kTries, kNoticeMs, [] { return ms_until_a_killed_rank_is_named(GetParam()); }), kNoticeMs);
}

INSTANTIATE_TEST_SUITE_P(Cluster, KilledRank,
                         ::testing::Values(Parameters{2, 0, kSmall}, Parameters{2, 0, kLarge}, Parameters{2, 1, kSmall},
                                           Parameters{2, 1, kLarge}, Parameters{3, 0, kSmall}, Parameters{3, 0, kLarge},
                                           Parameters{3, 1, kSmall}, Parameters{3, 1, kLarge}, Parameters{4, 0, kSmall},
                                           Parameters{4, 0, kLarge}, Parameters{4, 1, kSmall}, Parameters{4, 1, kLarge},
                                           Parameters{4, 3, kSmall}, Parameters{4, 3, kLarge}),
                         [](const auto& one) {
                           return std::to_string(std::get<0>(one.param)) + "RanksLose" + std::to_string(std::get<1>(one.param)) +
                                  (std::get<2>(one.param) == kSmall ? "Small" : "Large");
                         });

// Other collectives wait in other ways, and sleeping ranks must be woken too.
class KilledIn : public ::testing::TestWithParam<std::string> {};

double ms_until_a_rank_killed_in(const std::string& collective) {
  constexpr int kRanks = 3;
  Job job(Kind::processes, kRanks, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    const std::size_t count = 100'000;
    std::vector<float> in(count * kRanks, 1.0F);
    std::vector<float> out(count * kRanks);
    int root = 0;
    const auto operation = [&] {
      root = (root + 1) % kRanks;  // so that the lost rank is sometimes the root
      if (collective == "AllGather") return setoAllGather(in.data(), out.data(), count, setoFloat32, comm, nullptr);
      if (collective == "AllToAll") return setoAlltoAll(in.data(), out.data(), count, setoFloat32, comm, nullptr);
      if (collective == "Broadcast") return setoBroadcast(in.data(), out.data(), count, setoFloat32, root, comm, nullptr);
      if (collective == "Reduce") return setoReduce(in.data(), out.data(), count, setoFloat32, setoSum, root, comm, nullptr);
      if (collective == "Barrier") return setoBarrier(comm, nullptr);
      return setoReduceScatter(in.data(), out.data(), count, setoFloat32, setoSum, comm, nullptr);
    };
    expect_named(repeat(operation, seat), seat, 1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  EXPECT_TRUE(job.reached(1, 20));
  const std::uint64_t killed_ns = now_ns();
  job.kill(1);
  job.finish();
  return static_cast<double>(slowest_ms(job, kRanks, 1, killed_ns));
}

TEST_P(KilledIn, CollectiveIsNamedByAllOthers) {
  EXPECT_LT(least_of(kTries, kNoticeMs, [] { return ms_until_a_rank_killed_in(GetParam()); }), kNoticeMs);
}

INSTANTIATE_TEST_SUITE_P(Cluster, KilledIn,
                         ::testing::Values("AllGather", "AllToAll", "Broadcast", "Reduce", "Barrier", "ReduceScatter"),
                         [](const auto& one) { return one.param; });

// A rank that is frozen (stopped, or busy elsewhere) while the others sleep in the kernel, and then dies.
double ms_until_sleepers_name_a_killed_rank() {
  constexpr int kRanks = 4;
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    seat.meet(1);
    if (seat.rank == 2)
      for (;;) pause();
    float value = 1;
    const Answer heard = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
    seat.board.time_ns[static_cast<std::size_t>(seat.rank)] = now_ns();
    expect_named(heard, seat, 2);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(job.reached(rank, 1));
  // The others sleep by then. The test is about sleeping ranks; it does not wait for an event here.
  const std::uint64_t asleep_ns = now_ns() + 300'000'000;
  while (now_ns() < asleep_ns) std::this_thread::yield();
  const std::uint64_t killed_ns = now_ns();
  job.kill(2);
  job.finish();
  const std::uint64_t took_ms = slowest_ms(job, kRanks, 2, killed_ns);
  std::printf("sleeping ranks named the killed one within %llu ms\n", static_cast<unsigned long long>(took_ms));
  return static_cast<double>(took_ms);
}

TEST(KilledRankLate, WakesSleepers) { EXPECT_LT(least_of(kTries, kNoticeMs, ms_until_sleepers_name_a_killed_rank), kNoticeMs); }

class LeavingRank : public ::testing::TestWithParam<std::string> {};

// A rank that leaves while the others continue. Only setoCommDestroy delivers data that waits for room in a socket, so before any
// other end the others must have received all of it.
TEST_P(LeavingRank, IsNamed) {
  const std::string way = GetParam();
  run_ranks(Kind::processes, 3, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    if (way != "Destroy") {
      ASSERT_TRUE(seat.meet(1));
    }
    if (seat.rank == 1) {
      if (way == "Exit") std::exit(0);
      if (way == "QuickExit") _exit(0);
      EXPECT_EQ(way == "Destroy" ? setoCommDestroy(comm) : setoCommAbort(comm), setoSuccess);
      seat.meet(2);
      return;
    }
    std::vector<float> values(10'000, 1.0F);
    expect_named(answer(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr)), seat,
                 1);
    if (way == "Destroy" || way == "Abort") seat.meet(2);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Each rank waits for a message of the next one, and the last one leaves. The failure travels from rank to rank, and all ranks
// name the last.
TEST(LostRank, IsNamedByAChainOfWaitingRanks) {
  run_ranks(Kind::processes, 5, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    const int last = seat.ranks - 1;
    if (seat.rank == last) {
      EXPECT_EQ(setoCommAbort(comm), setoSuccess);
      ASSERT_TRUE(seat.meet(2));
      return;
    }
    float value = 0;
    const Answer heard = answer(setoRecv(&value, 1, setoFloat32, seat.rank + 1, comm, nullptr));
    EXPECT_EQ(heard.code, setoRemoteError) << heard;
    EXPECT_TRUE(heard.says("rank " + std::to_string(last))) << "rank " << seat.rank << ": " << heard;
    ASSERT_TRUE(seat.meet(2));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Ends of one rank that do not end the process of all.
class LeavingThread : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavingThread, IsNamed) {
  const std::string way = GetParam();
  run_ranks(Kind::threads, 3, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    if (way != "Destroy") {
      ASSERT_TRUE(seat.meet(1));
    }
    if (seat.rank == 1) {
      EXPECT_EQ(way == "Destroy" ? setoCommDestroy(comm) : setoCommAbort(comm), setoSuccess);
      return;
    }
    std::vector<float> values(10'000, 1.0F);
    expect_named(answer(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr)), seat,
                 1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, LeavingThread, ::testing::Values("Destroy", "Abort"),
                         [](const auto& one) { return one.param; });
INSTANTIATE_TEST_SUITE_P(Cluster, LeavingRank, ::testing::Values("Exit", "QuickExit", "Destroy", "Abort"),
                         [](const auto& one) { return one.param; });

class LateRank : public ::testing::TestWithParam<Kind> {};

TEST_P(LateRank, IsNamedAtTheDeadline) {
  run_ranks(GetParam(), 4, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.operationTimeoutMs = 500;
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat, kLongDeadlineMs);
    if (seat.rank != 1 && seat.rank != 2) {
      float value = 1;
      const std::uint64_t begin_ns = now_ns();
      const Answer late = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
      const std::uint64_t took_ms = (now_ns() - begin_ns) / 1'000'000;
      // The first rank that times out leaves, and the other may learn of that before its own deadline.
      EXPECT_TRUE(late.code == setoTimeout || late.code == setoRemoteError) << late;
      EXPECT_TRUE(late.says("1") && late.says("2") && late.says("never came")) << "rank " << seat.rank << ": " << late;
      if (late.code == setoTimeout) {
        EXPECT_GE(took_ms, 400U);
      }
      EXPECT_LT(took_ms, 15'000U);
    }
    seat.meet(1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Time for ranks 0 and 2 to call, and for the data of rank 0 to arrive, although other programs take the processor away.
constexpr std::uint32_t kUntilAllOthersWaitMs = 3000;

// In a ring a rank waits for the previous one, whichever rank is missing. The first rank that times out names the slice that it
// waits for.
TEST_P(LateRank, IsReportedWithTheStepThatWaits) {
  run_ranks(GetParam(), 4, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.algorithm = "ring";
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    if (seat.rank != 3) {
      std::vector<float> values(1000, 1.0F);
      setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
      call.deadlineMs = seat.rank == 1 ? kUntilAllOthersWaitMs : 0;
      const Answer late =
          answer(setoAllReduceConfig(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(late.code, seat.rank == 1 ? setoTimeout : setoRemoteError) << late;
      // Rank 0 sent its own part and nothing after it: rank 1 waits for data that rank 0 must get from rank 3.
      if (seat.rank == 1) {
        EXPECT_TRUE(late.says("rank 3 never came; rank 1 waits for slice 1 of 1 from rank 0 (step 3 of ")) << late;
        EXPECT_TRUE(late.says(", ring all_reduce)")) << late;
      }
    }
    seat.meet(1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// One call has a deadline, and the late rank calls after it: its failure names the reason.
TEST_P(LateRank, FailsWithTheReasonWhenItCalls) {
  run_ranks(GetParam(), 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(50'000, 1.0F);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    // With one_shot the late rank would find all data that it needs, and succeed.
    ASSERT_EQ(setoAlgorithmId("two_shot", &call.algorithm), setoSuccess);
    if (seat.rank == 1) {
      while (seat.board.counter[0].load() < 1) std::this_thread::yield();
      const Answer heard =
          answer(setoAllReduceConfig(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(heard.code, setoRemoteError) << heard;
      EXPECT_TRUE(heard.says("rank 0")) << heard;
    } else {
      call.deadlineMs = 200;
      const Answer late =
          answer(setoAllReduceConfig(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(late.code, setoTimeout) << late;
      EXPECT_TRUE(late.says("rank 1")) << late;
      seat.board.counter[0] = 1;
    }
    seat.meet(2);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, LateRank, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

// ---- work pending at the end ----

// Rank 0 destroys its queued operations; the other ranks never issue them, or have left.
TEST(PendingWork, AbortEndsIt) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 0) {
      setoStream_t stream = nullptr;
      ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
      std::vector<float> values(1 << 20, 1.0F);
      for (int i = 0; i < 5; ++i)
        ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, stream), setoSuccess);
      EXPECT_EQ(setoStreamPoll(stream, 5), setoInProgress);
      EXPECT_EQ(setoCommAbort(comm), setoSuccess);
      const Answer ended = answer(setoStreamWait(stream, 5, 10'000));
      EXPECT_NE(ended.code, setoSuccess) << ended;
      EXPECT_NE(ended.code, setoTimeout) << "the queued operations hang after the abort";
      EXPECT_NE(setoStreamDestroy(stream), setoInternalError);
      seat.meet(2);
      return;
    }
    seat.meet(2);
    float value = 1;
    expect_named(answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr)), seat, 0);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Destroy waits for the operations that this rank has queued, limited by their deadline.
TEST(PendingWork, DestroyWaitsForItWithinTheDeadline) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.operationTimeoutMs = 400;
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat, kLongDeadlineMs);
    if (seat.rank == 0) {
      setoStream_t stream = nullptr;
      ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
      std::vector<float> values(1 << 20, 1.0F);
      ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, stream), setoSuccess);
      const Answer ended = answer(setoCommDestroy(comm));
      EXPECT_EQ(ended.code, setoTimeout) << ended;
      EXPECT_TRUE(ended.says("rank 1")) << ended;
      (void)setoStreamDestroy(stream);
      seat.meet(1);
      return;
    }
    seat.meet(1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// The same with ranks that issue the operations: destroy completes the work first.
TEST(PendingWork, DestroyCompletesIt) {
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    std::vector<int> values(300'000, 1);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoInt32, setoSum, comm, stream), setoSuccess);
    const Answer ended = answer(setoCommDestroy(comm));
    EXPECT_EQ(ended.code, setoSuccess) << "rank " << seat.rank << ": " << ended;
    EXPECT_EQ(values.front(), 27);
    EXPECT_EQ(values.back(), 27);
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  });
}

TEST(PendingWork, AbortFromAnotherThreadEndsABlockingCall) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 0) {
      std::thread other([&] {
        while (comm->active_calls.load() == 0) std::this_thread::yield();  // from then on the handle's memory stays valid
        EXPECT_EQ(setoCommAbort(comm), setoSuccess);
      });
      float value = 1;
      const Answer ended = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
      other.join();
      EXPECT_NE(ended.code, setoSuccess) << ended;
    }
    seat.meet(2);
    if (seat.rank == 1) {
      float value = 1;
      // The data that rank 0 had sent before the abort may be enough for the first call.
      Answer heard = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
      if (heard.code == setoSuccess) heard = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
      expect_named(heard, seat, 0);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    }
  });
}

}  // namespace
}  // namespace seto::testing

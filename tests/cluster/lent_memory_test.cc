// Memory of setoMemAlloc, which ranks in other processes read where it lies. Every call is followed at once by what a caller may
// do then: it writes into its buffers, or frees them. A peer that reads late has a wrong result, or ends with a signal.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/core/connect/context.h"
#include "tests/support/child_process.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "tests/support/sanitizers.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::size_t kLong = std::size_t{1} << 18;  // floats: 1 MiB

// Floats of setoMemAlloc, or of operator new.
class Floats {
 public:
  explicit Floats(std::size_t count, bool lendable = true) : count_(count), own_(lendable ? 0 : count) {
    if (!lendable) return;
    void* memory = nullptr;
    EXPECT_EQ(setoMemAlloc(&memory, count * sizeof(float)), setoSuccess);
    lent_ = static_cast<float*>(memory);
  }
  ~Floats() { EXPECT_EQ(setoMemFree(lent_), setoSuccess); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  [[nodiscard]] float* data() { return lent_ != nullptr ? lent_ : own_.data(); }
  void fill(float value) { std::fill(data(), data() + count_, value); }
  // The number of elements of a range that differ.
  [[nodiscard]] std::size_t wrong(float value, std::size_t begin, std::size_t end) {
    return static_cast<std::size_t>(std::count_if(data() + begin, data() + end, [&](float one) { return one != value; }));
  }
  [[nodiscard]] std::size_t wrong(float value) { return wrong(value, 0, count_); }

 private:
  std::size_t count_;
  std::vector<float> own_;
  float* lent_ = nullptr;
};

// Files of other processes that this one maps for reading only: the memory of setoMemAlloc of its peers.
std::size_t mapped_of_peers() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find(" r--s ") != std::string::npos && line.find("/memfd:seto") != std::string::npos ? 1U : 0U;
  return count;
}

std::size_t leased_by(setoComm_t comm) { return context_of(comm).transports().memory_use().leased; }

setoResult_t sum(Floats& input, Floats& output, std::size_t count, setoComm_t comm) {
  return setoAllReduce(input.data(), output.data(), count, setoFloat32, setoSum, comm, nullptr);
}

// True on all ranks if it is true on each.
bool on_all(setoComm_t comm, bool here) {
  const float mine = here ? 1 : 0;
  float least = 0;
  EXPECT_EQ(setoAllReduce(&mine, &least, 1, setoFloat32, setoMin, comm, nullptr), setoSuccess);
  return least == 1;
}

// Joins with one algorithm. The choice follows what was measured, and some algorithms send messages of several pieces, which lie
// apart and are never lent.
setoComm_t join_with(const char* algorithm, const Seat& seat) {
  setenv("SETO_ALGORITHM", algorithm, 1);
  return seat.join();
}

// A few calls, until every rank has mapped the memory of another.
void warm_up(setoComm_t comm, const Seat& seat) {
  Floats input(kLong);
  Floats output(kLong);
  input.fill(1);
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(sum(input, output, kLong, comm), setoSuccess);
    EXPECT_EQ(output.wrong(static_cast<float>(seat.ranks)), 0U);
    return on_all(comm, mapped_of_peers() > 0);
  })) << mapped_of_peers();
}

class LentMemory : public ::testing::TestWithParam<int> {};

// Once the processes have mapped each other's memory, a new communicator lends from its first call on: no stream leases a slot.
TEST_P(LentMemory, IsReadWithoutSlots) {
  run_ranks(Kind::processes, GetParam(), [](const Seat& seat) {
    const setoComm_t parent = join_with("direct", seat);
    ASSERT_NE(parent, nullptr);
    const auto ranks = static_cast<std::size_t>(seat.ranks);
    Floats input(kLong * ranks);
    Floats output(kLong * ranks);
    setoComm_t child = nullptr;
    std::size_t before = 0;
    EXPECT_TRUE(eventually([&] {
      EXPECT_TRUE(child == nullptr || setoCommDestroy(child) == setoSuccess);
      EXPECT_EQ(setoCommSplit(parent, 0, seat.rank, &child, nullptr), setoSuccess);
      before = leased_by(parent);
      EXPECT_EQ(setoAllGather(input.data(), output.data(), kLong, setoFloat32, child, nullptr), setoSuccess);
      return on_all(parent, leased_by(parent) == before);
    }));
    for (int call = 1; call <= 5; ++call) {
      input.fill(static_cast<float>(seat.rank + call));
      ASSERT_EQ(setoAllGather(input.data(), output.data(), kLong, setoFloat32, child, nullptr), setoSuccess);
      input.fill(-1);
      for (std::size_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(output.wrong(static_cast<float>(static_cast<int>(rank) + call), rank * kLong, (rank + 1) * kLong), 0U);
    }
    EXPECT_EQ(leased_by(parent), before) << "slots were used";
    Floats ordinary(kLong, false);
    ordinary.fill(2);
    ASSERT_EQ(setoAllGather(ordinary.data(), output.data(), kLong, setoFloat32, child, nullptr), setoSuccess);
    EXPECT_EQ(output.wrong(2), 0U);
    EXPECT_GT(leased_by(parent), before) << "memory that peers cannot read was lent";
    EXPECT_EQ(setoCommDestroy(child), setoSuccess);
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
  });
}

// Each rank chooses alone: in some calls its input, its output, both or neither are lendable. Memory is freed after each call, so
// that later buffers lie where earlier ones lay.
TEST_P(LentMemory, IsOverwrittenAndFreedAsSoonAsTheCallReturns) {
  run_ranks(Kind::processes, GetParam(), [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    const auto ranks = static_cast<std::size_t>(seat.ranks);
    const auto own = static_cast<std::size_t>(seat.rank);
    const int calls = static_cast<int>(support::repetitions(60, 20));
    for (int call = 0; call < calls; ++call) {
      const int turn = call + seat.rank;
      const std::size_t part = (std::size_t{5'000} << (call % 6)) + static_cast<std::size_t>(call);
      Floats small(part, turn % 2 == 0);
      Floats large(part * ranks, turn / 2 % 2 == 0);
      Floats other(part * ranks, turn / 4 % 2 == 0);
      const auto value = static_cast<float>(seat.rank + call);
      const auto total = static_cast<float>(static_cast<int>(ranks) * call + static_cast<int>(ranks * (ranks - 1) / 2));

      large.fill(value);
      ASSERT_EQ(sum(large, other, part * ranks, comm), setoSuccess);
      large.fill(-1);
      EXPECT_EQ(other.wrong(total), 0U) << "all_reduce " << call;
      other.fill(value);
      ASSERT_EQ(sum(other, other, part * ranks, comm), setoSuccess);
      EXPECT_EQ(other.wrong(total), 0U) << "in place " << call;
      other.fill(value);
      ASSERT_EQ(setoReduceScatter(other.data(), small.data(), part, setoFloat32, setoSum, comm, nullptr), setoSuccess);
      other.fill(-1);
      EXPECT_EQ(small.wrong(total), 0U) << "reduce_scatter " << call;
      small.fill(value);
      ASSERT_EQ(setoAllGather(small.data(), large.data(), part, setoFloat32, comm, nullptr), setoSuccess);
      small.fill(-1);
      for (std::size_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(large.wrong(static_cast<float>(static_cast<int>(rank) + call), rank * part, (rank + 1) * part), 0U)
            << "all_gather " << call;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        std::fill(large.data() + rank * part, large.data() + (rank + 1) * part, value + static_cast<float>(1000 * rank));
      ASSERT_EQ(setoAlltoAll(large.data(), other.data(), part, setoFloat32, comm, nullptr), setoSuccess);
      large.fill(-1);
      for (std::size_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(other.wrong(static_cast<float>(static_cast<int>(rank) + call + 1000 * static_cast<int>(own)), rank * part,
                              (rank + 1) * part),
                  0U)
            << "all_to_all " << call;
      const int root = call % seat.ranks;
      other.fill(value);
      ASSERT_EQ(setoBroadcast(other.data(), large.data(), part, setoFloat32, root, comm, nullptr), setoSuccess);
      other.fill(-1);
      EXPECT_EQ(large.wrong(static_cast<float>(root + call), 0, part), 0U) << "broadcast " << call;
    }
    EXPECT_GT(mapped_of_peers(), 0U) << "nothing was lent";
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, LentMemory, ::testing::Values(2, 3, 4),
                         [](const auto& one) { return std::to_string(one.param); });

TEST(LentMemoryOfManyRanks, IsRight) {
  run_ranks(Kind::processes, static_cast<int>(support::repetitions(32, 8)), [](const Seat& seat) {
    const setoComm_t comm = join_with("two_shot", seat);
    ASSERT_NE(comm, nullptr);
    warm_up(comm, seat);
    for (int call = 0; call < 3; ++call) {
      Floats input(kLong + 3);
      Floats output(kLong + 3);
      input.fill(static_cast<float>(call + 1));
      ASSERT_EQ(sum(input, output, kLong + 3, comm), setoSuccess);
      input.fill(-1);
      EXPECT_EQ(output.wrong(static_cast<float>((call + 1) * seat.ranks)), 0U);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// ---- failures: every call ends, and memory that was lent can be freed ----

void pass_time_us(int microseconds) {
  const std::uint64_t until = monotonic_ns() + static_cast<std::uint64_t>(microseconds) * 1000;
  while (monotonic_ns() < until) {
  }
}

// Calls until one fails; frees the memory that it used at once.
Answer call_until_failure(setoComm_t comm, const Seat& seat) {
  for (;;) {
    Floats input(kLong);
    Floats output(kLong);
    input.fill(1);
    const Answer one = answer(sum(input, output, kLong, comm));
    if (one.code != setoSuccess) return one;
    EXPECT_EQ(output.wrong(static_cast<float>(seat.ranks)), 0U);
    seat.board.counter[static_cast<std::size_t>(seat.rank)].fetch_add(1);
  }
}

// Kills a rank at some moment of a call. Each rank reads the memory of all others, so the others lose both a reader and an owner.
TEST(LentMemoryFailures, AKilledRankIsNamed) {
  for (int round = 0; round < 6; ++round) {
    constexpr int kRanks = 3;
    Job job(Kind::processes, kRanks, [](const Seat& seat) {
      const setoComm_t comm = join_with("two_shot", seat);
      ASSERT_NE(comm, nullptr);
      warm_up(comm, seat);
      const Answer heard = call_until_failure(comm, seat);
      EXPECT_EQ(heard.code, setoRemoteError) << heard;
      EXPECT_TRUE(heard.says("rank 1")) << heard;
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
    ASSERT_TRUE(job.reached(1, 5));
    pass_time_us(137 * round);  // another moment of a call in each round
    job.kill(1);
    job.finish();
  }
}

// A frozen rank may stand still while it reads. The others do not wait for it; it fails when it goes on.
TEST(LentMemoryFailures, AFrozenRankIsNotWaitedFor) {
  constexpr int kRanks = 3;
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    setenv("SETO_HEARTBEAT_MS", "50", 1);
    setenv("SETO_LIVENESS_TIMEOUT_MS", "3000", 1);
    const setoComm_t comm = join_with("two_shot", seat);
    ASSERT_NE(comm, nullptr);
    warm_up(comm, seat);
    const Answer heard = call_until_failure(comm, seat);
    EXPECT_EQ(heard.code, setoRemoteError) << heard;
    seat.board.figure[static_cast<std::size_t>(seat.rank)] = 1;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  ASSERT_TRUE(job.reached(1, 5));
  ::kill(job.pid(1), SIGSTOP);
  const auto ended = [&](std::size_t rank) { return job.board().figure[rank] == 1; };
  EXPECT_TRUE(eventually([&] { return ended(0) && ended(2); }));
  ::kill(job.pid(1), SIGCONT);
  job.finish();
}

// One rank aborts from another thread in the middle of its calls, and frees its memory when its call has returned.
TEST(LentMemoryFailures, AnAbortReturnsTheMemory) {
  for (int round = 0; round < 4; ++round) {
    run_ranks(Kind::processes, 3, [round](const Seat& seat) {
      const setoComm_t comm = join_with("two_shot", seat);
      ASSERT_NE(comm, nullptr);
      warm_up(comm, seat);
      std::thread aborter;
      if (seat.rank == 0)
        aborter = std::thread([&] {
          EXPECT_TRUE(eventually([&] { return seat.board.counter[0] >= 5; }));
          pass_time_us(211 * round);
          EXPECT_EQ(setoCommAbort(comm), setoSuccess);
        });
      const Answer heard = call_until_failure(comm, seat);
      EXPECT_NE(heard.code, setoSuccess);
      if (aborter.joinable()) aborter.join();
      const bool mine = seat.rank != 0;  // the abort has freed that of rank 0
      EXPECT_EQ(mine ? setoCommDestroy(comm) : setoSuccess, setoSuccess);
    });
  }
}

// A child that is forked in between shares the memory, holds no connection, and ends when it likes.
TEST(LentMemoryFailures, AForkedChildDisturbsNoRank) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = join_with("two_shot", seat);
    ASSERT_NE(comm, nullptr);
    warm_up(comm, seat);
    Floats input(kLong);
    Floats output(kLong);
    input.fill(3);
    {
      ChildProcess child([&] {
        void* memory = nullptr;
        return input.wrong(3) == 0 && setoMemAlloc(&memory, kLong) != setoSuccess && setoMemFree(input.data()) != setoSuccess;
      });
      for (int call = 0; call < 10; ++call) {
        ASSERT_EQ(sum(input, output, kLong, comm), setoSuccess);
        EXPECT_EQ(output.wrong(6), 0U);
      }
      EXPECT_TRUE(child.wait());
    }
    ASSERT_EQ(sum(input, output, kLong, comm), setoSuccess);
    EXPECT_EQ(output.wrong(6), 0U);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing

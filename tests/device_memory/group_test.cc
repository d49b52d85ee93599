// Collectives of one group: how many kernels they are, and that each call sees what the one before has written.
#include <barrier>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr std::size_t kLong = 20'000, kShort = 40;  // of several blocks, and of one

std::uint64_t launched() { return software_gpu::driver::control<std::uint64_t()>("softwareGpuLaunched")(); }

// A chain of calls of two ranks, each of which reads what the one before has written, in blocks that divide it otherwise.
class Chain final {
 public:
  explicit Chain(DeviceRank& mine)
      : mine_(mine),
        sums_(mine.upload(std::vector<std::int32_t>(kLong, 1))),
        all_(mine.upload(std::vector<std::int32_t>(2 * kLong, -1))),
        result_(mine.upload(std::vector<std::int32_t>(2 * kLong, -1))) {}

  static constexpr int kCalls = 5;
  void call(int number) {
    const setoComm_t comm = mine_.comm;
    const setoStream_t stream = mine_.stream();
    if (number == 0) expect(setoAllReduce(sums_, sums_, kLong, setoInt32, setoSum, comm, stream));
    if (number == 1) expect(setoAllReduce(sums_, sums_, kShort, setoInt32, setoSum, comm, stream));
    if (number == 2) expect(setoAllGather(sums_, all_, kLong, setoInt32, comm, stream));
    if (number == 3) expect(setoAllReduce(all_, result_, 2 * kLong, setoInt32, setoSum, comm, stream));
    if (number == 4) expect(setoBroadcast(result_, sums_, kLong, setoInt32, 1, comm, stream));
  }
  void call_all() {
    expect(setoGroupStart());
    for (int number = 0; number < kCalls; ++number) call(number);
    expect(setoGroupEnd());
  }
  // After so many chains.
  void expect_results(int chains) {
    std::vector<std::int32_t> sums(kLong, 1);
    std::int32_t first = 1, rest = 1;
    for (int chain = 0; chain < chains; ++chain) {
      first *= 8;
      rest *= 4;
    }
    std::fill(sums.begin(), sums.end(), rest);
    std::fill_n(sums.begin(), kShort, first);
    EXPECT_TRUE(mine_.read(sums_, kLong) == sums) << "rank " << mine_.rank;
    sums.insert(sums.end(), sums.begin(), sums.end());
    EXPECT_TRUE(mine_.read(result_, 2 * kLong) == sums) << "rank " << mine_.rank;
  }

 private:
  static void expect(setoResult_t result) { EXPECT_TRUE(succeeded(result)); }

  DeviceRank& mine_;
  std::int32_t* sums_;
  std::int32_t* all_;
  std::int32_t* result_;
};

class DeviceGroups : public DeviceFaults {
 protected:
  static constexpr int kRanks = 2;

  // All ranks together launch so many kernels in `calls`.
  void expect_launches(DeviceRank& mine, std::uint64_t launches, const std::function<void()>& calls) {
    mine.synchronize();
    meeting_.arrive_and_wait();
    const std::uint64_t before = launched();
    meeting_.arrive_and_wait();
    calls();
    mine.synchronize();
    meeting_.arrive_and_wait();
    EXPECT_EQ(launched() - before, launches);
    meeting_.arrive_and_wait();
  }

  template <class T>
  static void sum_of(DeviceRank& mine, T* memory, setoDataType_t type) {
    EXPECT_TRUE(succeeded(setoAllReduce(memory, memory, kShort, type, setoSum, mine.comm, mine.stream())));
  }

  std::barrier<> meeting_{kRanks};
};

TEST_F(DeviceGroups, CollectivesOfOneStreamAreOneLaunch) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Chain chain(mine);
    expect_launches(mine, kRanks, [&] { chain.call_all(); });
    chain.expect_results(1);
    expect_launches(mine, std::uint64_t{kRanks} * Chain::kCalls, [&] {
      for (int number = 0; number < Chain::kCalls; ++number) chain.call(number);
    });
    expect_launches(mine, kRanks, [&] { chain.call_all(); });
    chain.expect_results(3);
  });
}

TEST_F(DeviceGroups, ALongGroupAndSeveralTypesAreSeveralLaunches) {
  SETO_NEEDS_STAND_IN();
  start_gpus(1);  // for both ranks
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const whole = mine.upload(std::vector<std::int32_t>(kShort, 1));
    auto* const floats = mine.upload(std::vector<float>(kShort, 1));
    expect_launches(mine, std::uint64_t{kRanks} * 2, [&] {
      EXPECT_TRUE(succeeded(setoGroupStart()));
      for (std::uint32_t i = 0; i < kernels::kMostPrograms + 2; ++i) sum_of(mine, whole, setoInt32);
      EXPECT_TRUE(succeeded(setoGroupEnd()));
    });
    EXPECT_EQ(mine.read(whole, kShort), std::vector<std::int32_t>(kShort, 1 << 18));
    expect_launches(mine, std::uint64_t{kRanks} * 3, [&] {
      EXPECT_TRUE(succeeded(setoGroupStart()));
      for (int i = 0; i < 2; ++i) sum_of(mine, whole, setoInt32);
      for (int i = 0; i < 3; ++i) sum_of(mine, floats, setoFloat32);
      sum_of(mine, whole, setoInt32);
      EXPECT_TRUE(succeeded(setoGroupEnd()));
    });
    EXPECT_EQ(mine.read(whole, kShort), std::vector<std::int32_t>(kShort, 1 << 21));
    EXPECT_EQ(mine.read(floats, kShort), std::vector<float>(kShort, 8));
  });
}

class DeviceGroupSeeds : public DeviceGroups, public ::testing::WithParamInterface<int> {};

// One rank makes the calls in a group, the other one by one. In weak memory blocks see old values unless an order forbids it.
TEST_P(DeviceGroupSeeds, RanksNeedNotGroupAlike) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks, {{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", std::to_string(GetParam())}});
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Chain chain(mine);
    if (mine.rank == 0) chain.call_all();
    for (int number = 0; mine.rank == 1 && number < Chain::kCalls; ++number) chain.call(number);
    chain.expect_results(1);
  });
}

INSTANTIATE_TEST_SUITE_P(Weak, DeviceGroupSeeds, ::testing::Values(3, 4, 5), ::testing::PrintToStringParamName());

// Calls of another communicator on the same stream stay between those before and after them.
TEST_F(DeviceGroups, TheOrderOfAStreamIsKept) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    const setoComm_t whole = mine.comm;
    setoComm_t other = nullptr;
    ASSERT_TRUE(succeeded(setoCommSplit(whole, 0, mine.rank, &other, nullptr)));
    auto* const memory = mine.upload(std::vector<std::int32_t>(kShort, 1));
    auto* const first = mine.upload(std::vector<std::int32_t>(kShort, -1));
    expect_launches(mine, std::uint64_t{kRanks} * 3, [&] {
      EXPECT_TRUE(succeeded(setoGroupStart()));
      for (int i = 0; i < 2; ++i) sum_of(mine, memory, setoInt32);
      EXPECT_TRUE(succeeded(setoAllReduce(memory, first, kShort, setoInt32, setoMax, other, mine.stream())));
      sum_of(mine, memory, setoInt32);
      EXPECT_TRUE(succeeded(setoGroupEnd()));
    });
    EXPECT_EQ(mine.read(first, kShort), std::vector<std::int32_t>(kShort, 4));
    EXPECT_EQ(mine.read(memory, kShort), std::vector<std::int32_t>(kShort, 8));
    EXPECT_TRUE(succeeded(setoCommDestroy(other)));
  });
}

// The calls of one communicator are one launch although those of others stand between them, on other GPUs.
TEST_F(DeviceGroups, OneThreadDrivesSeveralGpus) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks);
  setenv("SETO_MEMORY", "device", 1);
  setoComm_t comms[kRanks] = {};
  ASSERT_TRUE(succeeded(setoCommInitAll(comms, kRanks, nullptr)));
  unsetenv("SETO_MEMORY");
  {
    DeviceRank first(driver(), 0, 0), second(driver(), 1, 1);
    DeviceRank* const ranks[] = {&first, &second};
    std::int32_t* memory[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks[rank]->comm = comms[rank];
      ASSERT_TRUE(ok(driver().ctx_set_current(ranks[rank]->context)));
      memory[rank] = ranks[rank]->upload(std::vector<std::int32_t>(kShort, 1));
    }
    const std::uint64_t before = launched();
    ASSERT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < 3; ++i)
      for (int rank = 0; rank < kRanks; ++rank) sum_of(*ranks[rank], memory[rank], setoInt32);
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(ok(driver().ctx_set_current(ranks[rank]->context)));
      EXPECT_EQ(ranks[rank]->read(memory[rank], kShort), std::vector<std::int32_t>(kShort, 8));
    }
    EXPECT_EQ(launched() - before, std::uint64_t{kRanks});
    for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  }
}

TEST_F(DeviceGroups, AGraphRepeatsALaunch) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Chain chain(mine);
    chain.call_all();  // shapes are bound before the capture
    mine.synchronize();
    meeting_.arrive_and_wait();
    EXPECT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::global)));
    chain.call_all();
    cuda::Graph graph = nullptr;
    EXPECT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    meeting_.arrive_and_wait();
    cuda::GraphExec executable = nullptr;
    EXPECT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    expect_launches(mine, std::uint64_t{kRanks} * 3, [&] {
      for (int round = 0; round < 3; ++round) EXPECT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    });
    chain.call_all();
    chain.expect_results(5);
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

// ---- failures

TEST_F(DeviceGroups, AnAbortEndsALaunchInTheMiddle) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    EXPECT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < (mine.rank == 0 ? 4 : 2); ++i) EXPECT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_TRUE(succeeded(setoGroupEnd()));
    if (mine.rank == 1) mine.synchronize();
    meeting_.arrive_and_wait();
    abort_rank_0(mine, memory);
  });
}

// The deadline and the text are those of the call that waits, the third one of its launch.
TEST_F(DeviceGroups, ARankThatNeverComesIsNamedWithTheCall) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    EXPECT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(succeeded(sum(mine, memory, kCount / 2)));
    if (mine.rank == 0) {
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      EXPECT_TRUE(succeeded(sum(mine, memory, kCount / 2)));
    }
    EXPECT_TRUE(succeeded(setoGroupEnd()));
    mine.synchronize();
    expect_failed(mine, "rank 1 never came");
    if (mine.rank == 0) {
      expect_failed(mine, "operation 3 (all_reduce of 1000 float, sum) did not end within 300 ms (its deadlineMs): ");
      expect_failed(mine, "rank 0 waits for rank 1 in ");
      expect_usable(mine, memory);
    }
    (void)setoCommDestroy(mine.comm);
    mine.comm = nullptr;
  });
}

TEST_F(DeviceGroups, AWrongCallIsNamed) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    std::vector<float> of_host(kCount, 1);
    EXPECT_TRUE(succeeded(setoGroupStart()));
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    void* const output = mine.rank == 0 ? memory : of_host.data();
    (void)setoReduceScatter(memory, output, kCount / 2, setoFloat32, setoSum, mine.comm, mine.stream());
    const setoResult_t ended = setoGroupEnd();
    if (mine.rank == 1) {
      EXPECT_EQ(ended, setoInvalidArgument);
    }
    mine.synchronize();
    expect_failed(mine, "rank 1 could not launch its call of reduce_scatter");
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  });
}

// ---- processes

// One process makes a group, the other single calls, of messages that are read in the buffers of the peer.
TEST_F(DeviceProcesses, AGroupIsOneLaunch) {
  SETO_NEEDS_STAND_IN();
  constexpr int kCalls = 4;
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 2; ++rank)
    children.emplace_back([&, rank] {
      return run_rank(rank, 2, 2, [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kLong, 1));
        const std::uint64_t before = launched();
        const auto grouped = [&](setoResult_t (*call)()) { return mine.rank == 0 ? call() : setoSuccess; };
        EXPECT_TRUE(succeeded(grouped(setoGroupStart)));
        for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(succeeded(sum(mine, memory, i == 1 ? kShort : kLong)));
        EXPECT_TRUE(succeeded(grouped(setoGroupEnd)));
        std::vector<float> expected(kLong, 8);
        std::fill_n(expected.begin(), kShort, 16.F);
        EXPECT_TRUE(mine.read(memory, kLong) == expected);
        EXPECT_EQ(launched() - before, mine.rank == 0 ? 1U : std::uint64_t{kCalls});
      });
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto::testing

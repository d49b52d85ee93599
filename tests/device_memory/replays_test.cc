// Replays of graphs whose peers never come, without a relay: their deadline, and the word by which the watcher sees them.
#include "src/core/device_memory/replays.h"

#include "tests/device_memory/device_faults.h"
#include "tests/device_memory/lent_calls.h"

namespace seto::testing {
namespace {

constexpr int kPair = 2;

class DeviceReplays : public DeviceFaults {
 protected:
  using Calls = std::function<void(DeviceRank&, float*)>;

  // Rank 0 replays the calls, and rank 1 never does. Both name what is missing, and the stream of rank 0 goes on.
  void replay_in_vain(const Calls& calls, const std::string& error) {
    SCOPED_TRACE(error);
    on_ranks(
        kPair,
        [&](DeviceRank& mine) {
          auto* const memory = mine.upload(std::vector<float>(2 * kLent, 1));
          if (mine.rank == 0) {
            const RepeatedCalls graph(mine, [&] { calls(mine, memory); });
            for (int round = 0; round < 2; ++round) graph.launch();
            (void)sum(mine, memory);  // behind the replays
            mine.synchronize();
          }
          expect_failed(mine, error);
          abort(mine);
          expect_usable(mine, memory);
        },
        device_config(150));
  }
};

TEST_F(DeviceReplays, OneWhosePeerNeverComesNamesItAtTheDeadline) {
  start_gpus(kPair);
  replay_in_vain([](DeviceRank& mine, float* memory) { EXPECT_TRUE(succeeded(sum(mine, memory))); },
                 "a replay of all_reduce of 1000 float, sum, of a CUDA graph, did not end within 150 ms "
                 "(SETO_OPERATION_TIMEOUT_MS): rank 0 waits for rank 1 in ");
  replay_in_vain(
      [](DeviceRank& mine, float* memory) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        for (int call = 0; call < 3; ++call) EXPECT_TRUE(succeeded(sum(mine, memory, kLent)));
        EXPECT_TRUE(succeeded(setoGroupEnd()));
      },
      "a replay of all_reduce of 13000 float, sum and the 2 calls after it, of a CUDA graph, did not end within 450 ms, the time "
      "of its 3 calls: rank 0 waits for rank 1 in ");
  replay_in_vain(
      [](DeviceRank& mine, float* memory) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        EXPECT_TRUE(succeeded(send(mine, memory, kCount, 1)));
        EXPECT_TRUE(succeeded(receive(mine, memory + kCount, kCount, 1)));
        EXPECT_TRUE(succeeded(setoGroupEnd()));
      },
      "did not end within 150 ms (SETO_OPERATION_TIMEOUT_MS): receive of 1000 float from rank 1 was not sent");
}

// Nothing else ends the time of a replay than the graph itself.
TEST_F(DeviceReplays, OneThatHasEndedIsNeverOverdue) {
  start_gpus(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    constexpr std::uint32_t kMs = 1'000;
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    call.deadlineMs = kMs;
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    const RepeatedCalls graph(mine, [&] {
      EXPECT_TRUE(succeeded(setoAllReduceConfig(memory, memory, kCount, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
    });
    for (int round = 0; round < 2; ++round) graph.launch();
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 4));
    setoResult_t state = setoSuccess;
    for (const Deadline until = Deadline::after_ms(kMs + 100); state == setoSuccess && !until.passed();)
      EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
    EXPECT_EQ(state, setoSuccess) << setoGetLastError(mine.comm);
  });
}

// The deadline of a call that was captured is that of each of its replays. Those of other graphs have ended before.
TEST_F(DeviceReplays, EachCallThatIsCapturedHasItsOwnDeadline) {
  start_gpus(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    {
      const RepeatedCalls all_come(mine, [&] { EXPECT_TRUE(succeeded(sum(mine, memory))); });
      for (int round = 0; round < 3; ++round) all_come.launch();
      EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 8));
      const RepeatedCalls in_vain(mine, [&] { EXPECT_TRUE(succeeded(sum_in_vain(mine, memory))); });
      if (mine.rank == 0) in_vain.launch();
      mine.synchronize();
    }
    expect_failed(mine, "did not end within 300 ms (its deadlineMs): rank 0 waits for rank 1 in ");
    abort(mine);
    expect_usable(mine, memory);
  });
}

// ---- the word

class ReplayMarks : public software_gpu::driver::StandInTest {
 protected:
  static constexpr std::uint32_t kMs = 100;

  void SetUp() override {
    start();
    stream_ = make_stream();
    ASSERT_TRUE(ok(driver().mem_host_alloc(&word_, 8, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap)));
    *static_cast<std::uint64_t*>(word_) = 0;
    cuda::DevicePointer there = 0;
    ASSERT_TRUE(ok(driver().mem_host_get_device_pointer(&there, word_, 0)));
    replays_ = std::make_unique<Replays>(driver(), static_cast<std::uint32_t*>(word_), there);
  }
  void TearDown() override {
    EXPECT_TRUE(ok(driver().stream_destroy(stream_)));
    EXPECT_TRUE(ok(driver().mem_free_host(word_)));
  }

  void begin(const std::shared_ptr<DeviceShape>& shape) {
    EXPECT_TRUE(ok(replays_->mark_begin({{shape}, {CallDeadline(kMs, Config{})}, 0}, stream_)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream_)));
  }
  void end() {
    EXPECT_TRUE(ok(replays_->mark_end(stream_)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream_)));
  }
  Replays::Running overdue() {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    Replays::Running running = replays_->look();
    while (!running.is_overdue && !until.passed()) running = replays_->look();
    return running;
  }

  const std::shared_ptr<DeviceShape> first_ = std::make_shared<DeviceShape>(), second_ = std::make_shared<DeviceShape>();
  std::unique_ptr<Replays> replays_;

 private:
  cuda::Stream stream_ = nullptr;
  void* word_ = nullptr;
};

TEST_F(ReplayMarks, AReplayIsOverdueOnlyIfNoOtherOneHasBegunSince) {
  EXPECT_EQ(replays_->look().captured, nullptr);
  begin(first_);
  EXPECT_FALSE(replays_->look().is_overdue);
  const Replays::Running late = overdue();
  ASSERT_TRUE(late.is_overdue);
  EXPECT_EQ(late.captured->shapes.front(), first_);
  EXPECT_TRUE(replays_->still_runs(late));
  end();
  EXPECT_FALSE(replays_->still_runs(late));
  begin(first_);  // not seen between the two
  EXPECT_FALSE(replays_->still_runs(late));
  EXPECT_FALSE(replays_->look().is_overdue) << "this one has begun now";
  EXPECT_TRUE(overdue().is_overdue);
  end();
  EXPECT_EQ(replays_->look().captured, nullptr);
}

TEST_F(ReplayMarks, EqualLaunchesOfSeveralGraphsAreOne) {
  std::vector<std::uint32_t> numbers;
  for (const auto& shape : {first_, second_, first_}) {
    begin(shape);
    numbers.push_back(replays_->look().number);
    end();
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{1, 2, 1}));
}

}  // namespace
}  // namespace seto::testing

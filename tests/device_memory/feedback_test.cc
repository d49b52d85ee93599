// Errors of encoding that calls on device memory keep: results and saved states have the bits of host memory.
#include <cmath>

#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

constexpr std::size_t kElements = 3'000;
constexpr int kSteps = 4;

float gradient(int rank, std::size_t i, int step) {
  return std::sin(static_cast<float>(i) * 0.37F + static_cast<float>(rank + 5 * step)) * 0.01F + (i % 64 == 0 ? 1.0F : 0.003F);
}

std::vector<float> gradients(int rank, int step) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) values[i] = gradient(rank, i, step);
  return values;
}

std::vector<char> saved(setoErrorFeedback_t state) {
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoErrorFeedbackSize(state, &size)));
  std::vector<char> bytes(size);
  EXPECT_TRUE(succeeded(setoErrorFeedbackSave(state, bytes.data(), size)));
  return bytes;
}

setoCallConfig_t with(setoErrorFeedback_t state) {
  setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
  call.errorFeedback = state;
  return call;
}

// All sums between sites are encoded, with the same plan for both kinds of memory, whose rates differ.
setoConfig_t coded_config(const char* codec) {
  setoConfig_t config = device_config();
  config.deterministic = setoOn;
  config.codec = codec;
  return config;
}

constexpr Hosts kTwoSites{2, 1, true};

// The results of a rank in each step, and its state after all.
struct Kept {
  std::vector<std::vector<float>> results;
  std::vector<char> state;
};

class DeviceFeedback : public DeviceHosts {
 protected:
  setoErrorFeedback_t make(const DeviceRank& mine, std::size_t count = kElements) const {
    setoErrorFeedback_t state = nullptr;
    EXPECT_TRUE(succeeded(setoErrorFeedbackCreate(&state, count, setoFloat32, mine.comm)));
    return state;
  }
  static std::vector<float> sum(DeviceRank& mine, const setoCallConfig_t& call, int step) {
    float* const memory = mine.upload(gradients(mine.rank, step));
    EXPECT_TRUE(succeeded(setoAllReduceConfig(memory, memory, kElements, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
    return mine.read(memory, kElements);
  }
  static std::vector<float> sum_on_host(const DeviceRank& mine, const setoCallConfig_t& call, int step) {
    std::vector<float> memory = gradients(mine.rank, step);
    EXPECT_TRUE(
        succeeded(setoAllReduceConfig(memory.data(), memory.data(), kElements, setoFloat32, setoSum, mine.comm, nullptr, &call)));
    return memory;
  }
  // All steps on device memory or host memory, by rank.
  std::vector<Kept> train(const Hosts& hosts, const char* codec, setoMemory_t memory) const {
    setoConfig_t config = coded_config(codec);
    config.memory = memory;
    std::vector<Kept> all(static_cast<std::size_t>(hosts.ranks()));
    on_hosts(
        hosts,
        [&](DeviceRank& mine) {
          const setoErrorFeedback_t state = make(mine);
          const setoCallConfig_t call = with(state);
          Kept& kept = all[static_cast<std::size_t>(mine.rank)];
          for (int step = 0; step < kSteps; ++step)
            kept.results.push_back(memory == setoMemoryHost ? sum_on_host(mine, call, step) : sum(mine, call, step));
          kept.state = saved(state);
          EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(state)));
        },
        config);
    return all;
  }
  void compare(const Hosts& hosts, const char* codec) const {
    SCOPED_TRACE(codec);
    const std::vector<Kept> expected = train(hosts, codec, setoMemoryHost), got = train(hosts, codec, setoMemoryDevice);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      EXPECT_EQ(got[rank].results, expected[rank].results) << "rank " << rank;
      EXPECT_EQ(got[rank].state, expected[rank].state) << "rank " << rank;
    }
    const std::vector<Kept> without = train(hosts, "none", setoMemoryDevice);
    EXPECT_NE(got[0].results, without[0].results) << "nothing was encoded";
    EXPECT_NE(got[0].state, without[0].state) << "nothing was kept";
  }
};

TEST_F(DeviceFeedback, ResultsAndStatesAreThoseOfTheHost) {
  start_gpus(4);
  for (const char* const codec : {"world=int4", "world=int8"}) compare(kTwoSites, codec);
  compare({2, 2, true}, "world=fp16");
}

// A state moves between kinds of memory; a reset one is as a new one, and so is one in memory that another state had.
TEST_F(DeviceFeedback, StatesAreLoadedAndReset) {
  start_gpus(2);
  on_hosts(
      kTwoSites,
      [&](DeviceRank& mine) {
        setoErrorFeedback_t state = make(mine);
        const std::vector<char> fresh = saved(state);
        const setoCallConfig_t call = with(state);
        const std::vector<float> first = sum(mine, call, 0);
        const std::vector<char> after = saved(state);
        EXPECT_NE(after, fresh);
        const std::vector<float> second = sum(mine, call, 1);
        ASSERT_TRUE(succeeded(setoErrorFeedbackLoad(state, after.data(), after.size())));
        EXPECT_EQ(saved(state), after);
        EXPECT_EQ(sum(mine, call, 1), second);
        ASSERT_TRUE(succeeded(setoErrorFeedbackReset(state)));
        EXPECT_EQ(saved(state), fresh);
        EXPECT_EQ(sum(mine, call, 0), first);
        EXPECT_EQ(saved(state), after);
        EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(state)));
        state = make(mine);
        EXPECT_EQ(saved(state), fresh);
        EXPECT_EQ(sum(mine, with(state), 0), first);
        EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(state)));
      },
      coded_config("world=int4"));
}

TEST_F(DeviceFeedback, AStateIsNotReadWhileAKernelUsesIt) {
  start_gpus(2);
  on_hosts(
      kTwoSites,
      [&](DeviceRank& mine) {
        const setoErrorFeedback_t state = make(mine);
        const setoCallConfig_t call = with(state);
        float* const memory = mine.upload(gradients(mine.rank, 0));
        // The stream waits for this word, so the kernel cannot have ended.
        void* word = nullptr;
        cuda::DevicePointer there = 0;
        ASSERT_TRUE(ok(mine.driver.mem_host_alloc(&word, sizeof(std::uint64_t), cuda::kHostAllocDeviceMap)));
        std::atomic_ref<std::uint32_t> is_open(*static_cast<std::uint32_t*>(word));
        is_open = 0;
        ASSERT_TRUE(ok(mine.driver.mem_host_get_device_pointer(&there, word, 0)));
        ASSERT_TRUE(ok(mine.driver.stream_wait_value32(mine.cuda_stream, there, 1, cuda::kWaitEqual)));
        EXPECT_TRUE(
            succeeded(setoAllReduceConfig(memory, memory, kElements, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
        EXPECT_TRUE(
            failed(setoErrorFeedbackReset(state), setoInvalidUsage, "errorFeedback: a call that was queued or is under way"));
        is_open = 1;
        mine.synchronize();
        EXPECT_FALSE(saved(state).empty());
        // The memory stays while a call uses it, although its handle is gone.
        EXPECT_TRUE(
            succeeded(setoAllReduceConfig(memory, memory, kElements, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
        EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(state)));
        const setoErrorFeedback_t other = make(mine);
        mine.synchronize();
        EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(other)));
        EXPECT_TRUE(ok(mine.driver.mem_free_host(word)));
      },
      coded_config("world=int4"));
}

TEST_F(DeviceFeedback, AGraphKeepsErrorsFromReplayToReplay) {
  start_gpus(2);
  std::vector<float> expected;
  on_hosts(
      kTwoSites,
      [&](DeviceRank& mine) {
        const setoErrorFeedback_t state = make(mine), other = make(mine);
        const setoCallConfig_t call = with(state), without_graph = with(other);
        float* const memory = mine.upload(gradients(mine.rank, 0));
        ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
        EXPECT_TRUE(
            succeeded(setoAllReduceConfig(memory, memory, kElements, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
        cuda::Graph graph = nullptr;
        ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
        cuda::GraphExec executable = nullptr;
        ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
        for (int step = 0; step < kSteps; ++step) {
          mine.write(memory, gradients(mine.rank, step));
          ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
          EXPECT_EQ(mine.read(memory, kElements), sum(mine, without_graph, step)) << "step " << step;
        }
        EXPECT_EQ(saved(state), saved(other));
        EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
        EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
        for (const setoErrorFeedback_t one : {state, other}) EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(one)));
      },
      coded_config("world=int4"));
}

TEST_F(DeviceFeedback, WrongStatesAreRefused) {
  start_gpus(1);
  setoErrorFeedback_t left = nullptr;
  on_ranks(1, [&](DeviceRank& mine) {
    const setoErrorFeedback_t empty = make(mine, 0);
    EXPECT_FALSE(saved(empty).empty());
    EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(empty)));
    setoErrorFeedback_t state = nullptr;
    EXPECT_TRUE(failed(setoErrorFeedbackCreate(&state, 5, setoInt32, mine.comm), setoInvalidArgument, "no codec accepts"));
    EXPECT_TRUE(
        failed(setoErrorFeedbackCreate(&state, std::size_t{1} << 40, setoFloat32, mine.comm), setoSystemError, "cuMemAlloc"));
    left = make(mine);
    (void)sum(mine, with(left), 0);
  });
  // The memory goes with the communicator.
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (LaunchWatcher::of_process().retired() > 0 && !until.passed()) continue;
  std::vector<char> bytes(kElements * sizeof(float) + 100);
  EXPECT_TRUE(failed(setoErrorFeedbackSave(left, bytes.data(), bytes.size()), setoInvalidUsage, "its communicator was ended"));
  EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(left)));
}

}  // namespace
}  // namespace seto::testing

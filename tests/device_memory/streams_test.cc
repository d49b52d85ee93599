// Order: streams, groups, several communicators, graphs.
#include <barrier>

#include "tests/device_memory/device_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 600;

std::vector<std::int32_t> all_of(std::int32_t value, std::size_t count = kCount) {
  return std::vector<std::int32_t>(count, value);
}

class DeviceStreams : public DeviceMemory {
 protected:
  // Sums of ones over two ranks: doubles what is there.
  static setoResult_t double_it(std::int32_t* memory, setoComm_t comm, setoStream_t stream, std::size_t count = kCount) {
    return setoAllReduce(memory, memory, count, setoInt32, setoSum, comm, stream);
  }
};

TEST_F(DeviceStreams, CallsOfACommunicatorRunInOrderOnWhateverStreams) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    cuda::Stream second = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_create_with_priority(&second, cuda::kStreamNonBlocking, 0)));
    auto* const memory = mine.upload(all_of(1));
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));
      ASSERT_TRUE(succeeded(double_it(memory, mine.comm, reinterpret_cast<setoStream_t>(second))));
    }
    ASSERT_TRUE(ok(mine.driver.stream_synchronize(second)));
    EXPECT_EQ(mine.read(memory, kCount), all_of(64));
    // The default streams: NULL, 1 and 2 are those of CUDA.
    for (const std::uintptr_t stream : {0, 1, 2}) {
      ASSERT_TRUE(succeeded(double_it(memory, mine.comm, reinterpret_cast<setoStream_t>(stream))));
      ASSERT_TRUE(ok(mine.driver.stream_synchronize(reinterpret_cast<cuda::Stream>(stream))));
    }
    EXPECT_EQ(mine.read(memory, kCount), all_of(512));
    ASSERT_TRUE(ok(mine.driver.stream_destroy(second)));
  });
}

TEST_F(DeviceStreams, ShapesTakeTurnsInOneWorkspace) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const large = mine.upload(all_of(1, 30'000));
    auto* const bytes = mine.upload(std::vector<std::uint8_t>(77, static_cast<std::uint8_t>(mine.rank + 1)));
    auto* const gathered = mine.upload(std::vector<std::uint8_t>(154, 9));
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(succeeded(double_it(large, mine.comm, mine.stream(), 30'000)));
      ASSERT_TRUE(succeeded(setoAllGather(bytes, gathered, 77, setoUint8, mine.comm, mine.stream())));
      ASSERT_TRUE(succeeded(double_it(large, mine.comm, mine.stream(), 5)));
    }
    std::vector<std::int32_t> expected = all_of(4, 30'000);
    std::fill_n(expected.begin(), 5, 16);
    EXPECT_EQ(mine.read(large, 30'000), expected);
    std::vector<std::uint8_t> both(154, 1);
    std::fill(both.begin() + 77, both.end(), std::uint8_t{2});
    EXPECT_EQ(mine.read(gathered, 154), both);
  });
}

TEST_F(DeviceStreams, ASplitAndItsParentWork) {
  start_gpus(2);
  on_ranks(4, [&](DeviceRank& mine) {
    setoComm_t half = nullptr;
    ASSERT_TRUE(succeeded(setoCommSplit(mine.comm, mine.rank / 2, 0, &half, nullptr)));
    int device = -1;
    ASSERT_TRUE(succeeded(setoCommCuDevice(half, &device)));
    EXPECT_EQ(device, mine.gpu);
    auto* const memory = mine.upload(all_of(1));
    ASSERT_TRUE(succeeded(double_it(memory, half, mine.stream())));
    ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(double_it(memory, half, mine.stream())));
    EXPECT_EQ(mine.read(memory, kCount), all_of(16));
    EXPECT_TRUE(succeeded(setoCommDestroy(half)));
  });
}

// The watcher ends operations while a split makes others of the same communicator.
TEST_F(DeviceStreams, ASplitWhileKernelsRun) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(all_of(1));
    for (int round = 0; round < 3; ++round) {
      for (int call = 0; call < 2; ++call) ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));
      setoComm_t other = nullptr;
      ASSERT_TRUE(succeeded(setoCommSplit(mine.comm, 0, mine.rank, &other, nullptr)));
      EXPECT_TRUE(succeeded(setoCommDestroy(other)));
    }
    EXPECT_EQ(mine.read(memory, kCount), all_of(64));
  });
}

// One thread, several GPUs: the calls of a group are launched on all of them.
TEST_F(DeviceStreams, OneThreadDrivesAllRanksInAGroup) {
  SETO_NEEDS_GPUS(2);
  start_gpus(3);
  setenv("SETO_MEMORY", "device", 1);
  setoComm_t comms[3] = {};
  const int devices[] = {1, 0, 1};  // two ranks share a GPU
  ASSERT_TRUE(succeeded(setoCommInitAll(comms, 3, devices)));
  unsetenv("SETO_MEMORY");
  {
    DeviceRank first(driver(), 0, 1), second(driver(), 1, 0), third(driver(), 2, 1);
    DeviceRank* const ranks[] = {&first, &second, &third};
    std::int32_t* memory[3];
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(ok(driver().ctx_set_current(ranks[rank]->context)));
      memory[rank] = ranks[rank]->upload(all_of(rank + 1));
    }
    ASSERT_TRUE(succeeded(setoGroupStart()));
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(succeeded(double_it(memory[rank], comms[rank], ranks[rank]->stream())));
      ASSERT_TRUE(succeeded(double_it(memory[rank], comms[rank], ranks[rank]->stream())));
    }
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    cuda::Context current = nullptr;
    ASSERT_TRUE(ok(driver().ctx_get_current(&current)));
    EXPECT_EQ(current, third.context);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(ok(driver().ctx_set_current(ranks[rank]->context)));
      EXPECT_EQ(ranks[rank]->read(memory[rank], kCount), all_of(18));
    }
    for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  }
}

TEST_F(DeviceStreams, ACapturedGraphIsReplayed) {
  start_gpus(kRanks);
  std::barrier captured(kRanks);  // while one rank captures, the driver refuses calls of the others that may wait
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(all_of(1));
    ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));  // the shape is bound before the capture
    mine.synchronize();
    captured.arrive_and_wait();
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::global)));
    EXPECT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));
    EXPECT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream(), 3)));  // a shape that is bound during the capture
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    captured.arrive_and_wait();
    EXPECT_EQ(mine.read(memory, kCount), all_of(2));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.stream())));
    std::vector<std::int32_t> expected = all_of(32);
    std::fill_n(expected.begin(), 3, 256);
    EXPECT_EQ(mine.read(memory, kCount), expected);
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

TEST_F(DeviceStreams, OperationsOfAllKinds) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const input = mine.upload(std::vector<double>(100, mine.rank + 1.0));
    auto* const output = mine.upload(std::vector<double>(100, -1));
    const auto reduced = [&](setoRedOp_t op) {
      EXPECT_TRUE(succeeded(setoAllReduce(input, output, 100, setoFloat64, op, mine.comm, mine.stream())));
      return mine.read(output, 100);
    };
    EXPECT_EQ(reduced(setoAvg), std::vector<double>(100, 1.5));
    EXPECT_EQ(reduced(setoMax), std::vector<double>(100, 2));
    EXPECT_EQ(reduced(setoProd), std::vector<double>(100, 2));
    double scalar = 10.0 * (mine.rank + 1);
    setoRedOp_t op{};
    ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat64, setoScalarHostImmediate, mine.comm)));
    EXPECT_EQ(reduced(op), std::vector<double>(100, 50));
    EXPECT_TRUE(succeeded(setoRedOpDestroy(op, mine.comm)));
    // Small integers are exact in fp16.
    auto* const floats = mine.upload(std::vector<float>(4000, static_cast<float>(mine.rank + 1)));
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_TRUE(succeeded(setoCodecId("fp16", &config.codec)));
    EXPECT_TRUE(succeeded(setoAllReduceConfig(floats, floats, 4000, setoFloat32, setoSum, mine.comm, mine.stream(), &config)));
    EXPECT_EQ(mine.read(floats, 4000), std::vector<float>(4000, 3));
    scalar = 1;
    ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat64, setoScalarHostImmediate, mine.comm)));
    EXPECT_EQ(reduced(op), std::vector<double>(100, 3));
  });
}

}  // namespace
}  // namespace seto::testing

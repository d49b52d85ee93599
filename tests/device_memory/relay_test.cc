// Collectives between GPUs that do not reach each other: on several hosts, at several sites, and without peer access. Their
// results are those of host memory, bit for bit.
#include <cstring>
#include <random>

#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kSeed = 20'26;

// Numbers whose sums are rounded, so that another order of additions or another codec shows.
std::vector<float> numbers(int rank, std::size_t count) {
  std::mt19937_64 random(kSeed + static_cast<std::uint64_t>(rank));
  std::uniform_real_distribution<float> range(-3, 3);
  std::vector<float> values(count);
  for (float& value : values) value = range(random);
  return values;
}

struct Sizes {
  std::size_t input = 0, output = 0;  // elements
};
using Call = std::function<setoResult_t(const void*, void*, setoComm_t, setoStream_t)>;

class DeviceRelay : public DeviceHosts {
 protected:
  // The call on device memory and on host memory, in communicators of the same hosts. The results must have the same bits.
  // Returns what rank 0 got.
  std::vector<std::vector<float>> compare(const Hosts& hosts, const std::vector<std::pair<Sizes, Call>>& calls,
                                          setoConfig_t config = device_config()) {
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    config.deterministic = setoOn;  // the same plan for both kinds of memory, whose rates differ
    const auto ranks = static_cast<std::size_t>(hosts.ranks());
    std::vector<std::vector<std::vector<float>>> expected(ranks), got(ranks);
    const auto inputs = [](int rank, const Sizes& sizes) { return numbers(rank, sizes.input); };
    on_hosts(
        hosts,
        [&](DeviceRank& mine) {
          std::vector<float*> outputs;
          for (const auto& [sizes, call] : calls) {
            const float* const input = mine.upload(inputs(mine.rank, sizes));
            outputs.push_back(mine.upload(std::vector<float>(sizes.output, -7)));
            ASSERT_TRUE(succeeded(call(input, outputs.back(), mine.comm, mine.stream())));
          }
          for (std::size_t i = 0; i < calls.size(); ++i)
            got[static_cast<std::size_t>(mine.rank)].push_back(mine.read(outputs[i], calls[i].first.output));
        },
        config);
    config.memory = setoMemoryHost;
    on_hosts(
        hosts,
        [&](DeviceRank& mine) {
          for (const auto& [sizes, call] : calls) {
            const std::vector<float> input = inputs(mine.rank, sizes);
            std::vector<float> output(sizes.output, -7);
            ASSERT_TRUE(succeeded(call(input.data(), output.data(), mine.comm, nullptr)));
            expected[static_cast<std::size_t>(mine.rank)].push_back(std::move(output));
          }
        },
        config);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(got[rank].size(), calls.size());
      for (std::size_t i = 0; i < got[rank].size(); ++i)
        EXPECT_TRUE(same_bits(got[rank][i], expected[rank].at(i))) << "rank " << rank << ", call " << i;
    }
    return got[0];
  }

  static ::testing::AssertionResult same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (got.size() != expected.size() || std::memcmp(&got[i], &expected[i], sizeof(float)) != 0)
        return ::testing::AssertionFailure() << "element " << i << ": " << got.at(i) << " instead of " << expected[i];
    return ::testing::AssertionSuccess();
  }

  static std::pair<Sizes, Call> all_reduce(std::size_t count, setoRedOp_t op = setoSum) {
    return {{count, count}, [=](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
              return setoAllReduce(input, output, count, setoFloat32, op, comm, stream);
            }};
  }
};

TEST_F(DeviceRelay, AllReduceOverTwoHosts) {
  start_gpus(2);
  compare({2, 1}, {all_reduce(1), all_reduce(1000), all_reduce(0), all_reduce(40'000), all_reduce(7), all_reduce(1000, setoMax)});
}

TEST_F(DeviceRelay, AllReduceOverTwoHostsInWeakMemory) {
  start_gpus(4, {{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "3"}});
  compare({2, 2}, {all_reduce(900), all_reduce(5), all_reduce(3000)});
}

TEST_F(DeviceRelay, CollectivesOverTwoHostsOfTwo) {
  constexpr std::size_t kPart = 700;
  constexpr std::size_t kAll = 4 * kPart;
  constexpr int kRoot = 1;
  start_gpus(4);
  compare({2, 2}, {all_reduce(20'000),
                   {{kPart, kAll},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoAllGather(input, output, kPart, setoFloat32, comm, stream);
                    }},
                   {{kAll, kPart},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoReduceScatter(input, output, kPart, setoFloat32, setoSum, comm, stream);
                    }},
                   {{kPart, kPart},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoBroadcast(input, output, kPart, setoFloat32, kRoot, comm, stream);
                    }},
                   {{kAll, kAll},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoAlltoAll(input, output, kPart, setoFloat32, comm, stream);
                    }},
                   {{kPart, kPart},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoReduce(input, output, kPart, setoFloat32, setoAvg, kRoot, comm, stream);
                    }},
                   all_reduce(3)});
}

TEST_F(DeviceRelay, HierarchicalBetweenSites) {
  start_gpus(4);
  setoConfig_t config = device_config();
  config.algorithm = "hierarchical";
  compare({2, 2, true}, {all_reduce(20'000), all_reduce(100)}, config);
}

TEST_F(DeviceRelay, SumsTravelInFp16BetweenSites) {
  start_gpus(4);
  setoConfig_t config = device_config();
  const std::vector<std::pair<Sizes, Call>> calls{all_reduce(30'000), all_reduce(777)};
  config.codec = "none";
  const auto exact = compare({2, 2, true}, calls, config);
  config.codec = "world=fp16";
  EXPECT_NE(compare({2, 2, true}, calls, config)[0], exact[0]) << "nothing was encoded";
  config.algorithm = "hierarchical";
  config.codec = "world=int8";
  EXPECT_NE(compare({2, 2, true}, calls, config)[0], exact[0]) << "nothing was encoded";
}

TEST_F(DeviceRelay, OtherTypesAndBlocksThatGetNothing) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    const auto check = [&]<class T>(setoDataType_t type, T one, T two) {
      for (const std::size_t count : {1, 5, 9000}) {
        T* const memory = mine.upload(std::vector<T>(count, one));
        ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, count, type, setoSum, mine.comm, mine.stream())));
        EXPECT_EQ(mine.read(memory, count), std::vector<T>(count, two)) << "type " << type;
      }
    };
    check(setoInt8, std::int8_t{3}, std::int8_t{6});
    check(setoUint64, std::uint64_t{1} << 40, std::uint64_t{1} << 41);
    check(setoFloat64, 0.375, 0.75);
    check(setoFloat16, std::uint16_t{0x3c00}, std::uint16_t{0x4000});  // 1 and 2
  });
}

// The GPUs of one host cannot map each other: their messages go through pinned memory.
TEST_F(DeviceRelay, GpusWithoutPeerAccess) {
  start_gpus(2, {{"SOFTWARE_GPU_PEERS", "none"}});
  on_ranks(2, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 3000, 70'000}) {
      float* const memory = mine.upload(std::vector<float>(count, static_cast<float>(mine.rank + 1)));
      for (int round = 0; round < 3; ++round)
        ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, count, setoFloat32, setoSum, mine.comm, mine.stream())));
      EXPECT_EQ(mine.read(memory, count), std::vector<float>(count, 12));
    }
    EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
  });
}

TEST_F(DeviceRelay, SomeGpusWithoutPeerAccess) {
  start_gpus(3, {{"SOFTWARE_GPU_PEERS", "0-1,0-2"}});
  on_ranks(3, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 9000}) {
      float* const memory = mine.upload(std::vector<float>(count, static_cast<float>(mine.rank + 1)));
      for (int round = 0; round < 2; ++round)
        ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, count, setoFloat32, setoSum, mine.comm, mine.stream())));
      EXPECT_EQ(mine.read(memory, count), std::vector<float>(count, 18));
    }
  });
}

TEST_F(DeviceRelay, PartsOfDifferentLengths) {
  static constexpr std::size_t kCounts[] = {700, 0, 5001, 3};
  constexpr std::size_t kAll = 5704;
  start_gpus(4);
  compare({2, 2}, {{{kAll, kAll},
                    [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      int rank = 0;
                      EXPECT_EQ(setoCommUserRank(comm, &rank), setoSuccess);
                      return setoAllGatherv(input, kCounts[rank], output, kCounts, nullptr, setoFloat32, comm, stream);
                    }},
                   {{kAll, kAll}, [](const void* input, void* output, setoComm_t comm, setoStream_t stream) {
                      return setoReduceScatterv(input, output, kCounts, setoFloat32, setoSum, comm, stream);
                    }}});
}

// A split takes operation numbers of the control between those of launches.
TEST_F(DeviceRelay, ASplitAndItsParentWork) {
  start_gpus(4);
  on_hosts({2, 2}, [&](DeviceRank& mine) {
    constexpr std::size_t kLong = 3000;
    float* const memory = mine.upload(std::vector<float>(kLong, 1));
    const auto sum = [&](setoComm_t comm) {
      return setoAllReduce(memory, memory, kLong, setoFloat32, setoSum, comm, mine.stream());
    };
    ASSERT_TRUE(succeeded(sum(mine.comm)));
    setoComm_t child = nullptr;  // a rank of each host
    ASSERT_TRUE(succeeded(setoCommSplit(mine.comm, mine.rank % 2, mine.rank, &child, nullptr)));
    ASSERT_TRUE(succeeded(sum(child)));
    ASSERT_TRUE(succeeded(sum(mine.comm)));
    EXPECT_EQ(mine.read(memory, kLong), std::vector<float>(kLong, 32));
    EXPECT_TRUE(succeeded(setoCommDestroy(child)));
    ASSERT_TRUE(succeeded(sum(mine.comm)));
    EXPECT_EQ(mine.read(memory, kLong), std::vector<float>(kLong, 128));
  });
}

// Each replay takes its number when it runs, between other calls.
TEST_F(DeviceRelay, AGraphIsReplayedBetweenHosts) {
  start_gpus(4);
  on_hosts({2, 2}, [&](DeviceRank& mine) {
    constexpr std::size_t kLong = 5000;
    float* const memory = mine.upload(std::vector<float>(kLong, 1));
    const auto sum = [&](std::size_t count) {
      return setoAllReduce(memory, memory, count, setoFloat32, setoAvg, mine.comm, mine.stream());
    };
    const auto doubled = [&](std::size_t count) {
      return setoAllReduce(memory, memory, count, setoFloat32, setoSum, mine.comm, mine.stream());
    };
    ASSERT_TRUE(succeeded(doubled(kLong)));
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    EXPECT_TRUE(succeeded(doubled(kLong)));
    EXPECT_TRUE(succeeded(doubled(3)));
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    EXPECT_EQ(mine.read(memory, kLong), std::vector<float>(kLong, 4));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    ASSERT_TRUE(succeeded(sum(kLong)));
    ASSERT_TRUE(succeeded(doubled(kLong)));
    ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    std::vector<float> expected(kLong, 4096);      // 4 ^ 6
    std::fill_n(expected.begin(), 3, 1048576.0F);  // 4 ^ 10
    EXPECT_EQ(mine.read(memory, kLong), expected);
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

}  // namespace
}  // namespace seto::testing

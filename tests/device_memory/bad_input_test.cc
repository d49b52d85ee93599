// Calls that are wrong: each is refused on the rank that makes it, and ends the communicator on the others.
#include <barrier>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr std::size_t kCount = 100;

class DeviceBadInput : public DeviceMemory {
 protected:
  using Wrong = std::function<setoResult_t(DeviceRank&, float* memory)>;

  // Rank 1 makes the wrong call, while rank 0 makes a right one. prepare_ runs on rank 1 before both: what waits for kernels,
  // such as a free, would wait for that of rank 0.
  void refused(const Wrong& call, const std::string& part, setoResult_t expected = setoInvalidArgument) {
    SCOPED_TRACE(part);
    std::barrier meeting(2);
    on_ranks(2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kCount, 1));
      meeting.arrive_and_wait();
      if (mine.rank == 1 && prepare_) prepare_(mine);
      meeting.arrive_and_wait();
      if (mine.rank == 0) {
        EXPECT_TRUE(succeeded(setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, mine.stream())));
        mine.synchronize();  // ends, because the kernel is told to
        EXPECT_NE(settled(mine.comm), setoSuccess);
        EXPECT_NE(std::string(setoGetLastError(mine.comm)).find("rank 1 could not launch its call of all_reduce"),
                  std::string::npos)
            << setoGetLastError(mine.comm);
      } else {
        EXPECT_TRUE(failed(call(mine, memory), expected, part));
        EXPECT_NE(settled(mine.comm), setoSuccess);
      }
      (void)setoCommAbort(mine.comm);
      mine.comm = nullptr;
      // The stream and the context stay usable.
      mine.write(memory, std::vector<float>(kCount, 7));
      EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 7));
    });
  }
  std::function<void(DeviceRank&)> prepare_;

  // All ranks sum at once, and the communicator has not failed.
  static void expect_works(DeviceRank& mine, float* memory, std::barrier<>& meeting) {
    EXPECT_EQ(settled(mine.comm), setoSuccess);
    meeting.arrive_and_wait();
    mine.write(memory, std::vector<float>(kCount, 1));
    EXPECT_TRUE(succeeded(sum(mine, memory, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
    const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(sum(mine, memory, memory))); });
    graph.launch();
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 4));
  }

  static setoResult_t sum(DeviceRank& mine, const void* input, void* output, std::size_t count = kCount) {
    return setoAllReduce(input, output, count, setoFloat32, setoSum, mine.comm, mine.stream());
  }
};

TEST_F(DeviceBadInput, HostMemory) {
  start_gpus(2);
  refused(
      [](DeviceRank& mine, float* memory) {
        std::vector<float> host(kCount);
        return sum(mine, host.data(), memory);
      },
      "sendbuff: ");
  refused(
      [](DeviceRank& mine, float* memory) {
        void* pinned = nullptr;
        EXPECT_TRUE(ok(mine.driver.mem_host_alloc(&pinned, kCount * sizeof(float), 0)));
        const setoResult_t result = sum(mine, memory, pinned);
        EXPECT_TRUE(ok(mine.driver.mem_free_host(pinned)));
        return result;
      },
      "recvbuff: ");
}

TEST_F(DeviceBadInput, MemoryOfAnotherGpuOrFreedOrTooShortOrMisaligned) {
  SETO_NEEDS_GPUS(2);
  start_gpus(2);
  refused(
      [](DeviceRank& mine, float* memory) {
        cuda::DevicePointer other = 0;
        cuda::Context context = nullptr;
        EXPECT_TRUE(ok(mine.driver.device_primary_ctx_retain(&context, 0)));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(context)));
        EXPECT_TRUE(ok(mine.driver.mem_alloc(&other, kCount * sizeof(float))));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(mine.context)));
        const setoResult_t result = sum(mine, reinterpret_cast<float*>(other), memory);
        EXPECT_TRUE(ok(mine.driver.mem_free(other)));
        return result;
      },
      "is memory of GPU 0, but this rank uses GPU 1");
  cuda::DevicePointer freed = 0;
  prepare_ = [&](DeviceRank& mine) {
    EXPECT_TRUE(ok(mine.driver.mem_alloc(&freed, kCount * sizeof(float))));
    EXPECT_TRUE(ok(mine.driver.mem_free(freed)));
  };
  refused([&](DeviceRank& mine, float* memory) { return sum(mine, memory, reinterpret_cast<float*>(freed)); }, "or it was freed");
  prepare_ = {};
  refused([](DeviceRank& mine, float* memory) { return sum(mine, memory, memory, 1 << 20); }, "but the allocation ends after ");
  refused(
      [](DeviceRank& mine, float* memory) {
        return sum(mine, reinterpret_cast<std::byte*>(memory) + 2, reinterpret_cast<std::byte*>(memory) + 2, 4);
      },
      "not aligned to 4 bytes");
}

TEST_F(DeviceBadInput, Streams) {
  start_gpus(2);
  refused(
      [](DeviceRank& mine, float* memory) {
        cuda::Context context = nullptr;
        cuda::Stream stream = nullptr;
        EXPECT_TRUE(ok(mine.driver.device_primary_ctx_retain(&context, 0)));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(context)));
        EXPECT_TRUE(ok(mine.driver.stream_create_with_priority(&stream, cuda::kStreamNonBlocking, 0)));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(mine.context)));
        const setoResult_t result =
            setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, reinterpret_cast<setoStream_t>(stream));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(context)));
        EXPECT_TRUE(ok(mine.driver.stream_destroy(stream)));
        EXPECT_TRUE(ok(mine.driver.ctx_set_current(mine.context)));
        return result;
      },
      "is of another context");
}

// Rank 1 loses its capture. Its calls are refused, and it can capture again.
TEST_F(DeviceBadInput, AStreamWhoseCaptureWasInvalidated) {
  constexpr const char* kWhy = "stream: its capture was invalidated by an earlier error: end the capture and begin again";
  start_gpus(2);
  std::barrier meeting(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    cuda::Graph graph = nullptr;
    cuda::DevicePointer unwanted = 0;
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    if (mine.rank == 0) {
      EXPECT_TRUE(succeeded(sum(mine, memory, memory)));
      EXPECT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
      EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
    } else {
      EXPECT_EQ(mine.driver.mem_alloc.code(&unwanted, 64), cuda::DriverCode::stream_capture_unsupported);
      EXPECT_TRUE(failed(sum(mine, memory, memory), setoInvalidUsage, kWhy));
      EXPECT_TRUE(failed(setoSend(memory, kCount, setoFloat32, 0, mine.comm, mine.stream()), setoInvalidUsage, kWhy));
      EXPECT_EQ(mine.driver.stream_end_capture.code(mine.cuda_stream, &graph), cuda::DriverCode::stream_capture_invalidated);
    }
    expect_works(mine, memory, meeting);
  });
}

// A stream that the legacy stream waits for cannot be captured beside its calls; others can.
TEST_F(DeviceBadInput, TheLegacyStreamWhileAnotherIsCaptured) {
  SETO_NEEDS_GPUS(2);  // ranks of one context share its legacy stream
  start_gpus(2);
  std::barrier meeting(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    const auto sum_on_legacy_stream = [&] {
      return setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, nullptr);
    };
    cuda::Stream blocking = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_create_with_priority(&blocking, 0, 0)));
    meeting.arrive_and_wait();
    for (const cuda::Stream captured : {mine.cuda_stream, blocking}) {
      cuda::Graph graph = nullptr;
      if (mine.rank == 1) {
        ASSERT_TRUE(ok(mine.driver.stream_begin_capture(captured, cuda::CaptureMode::global)));
        if (captured == blocking) {
          EXPECT_TRUE(failed(sum_on_legacy_stream(), setoInvalidUsage, "the legacy default stream (NULL) cannot be used while"));
        } else {
          EXPECT_TRUE(succeeded(sum_on_legacy_stream()));
        }
        EXPECT_TRUE(ok(mine.driver.stream_end_capture(captured, &graph))) << "a refused call leaves the capture as it was";
        EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
      }
      if (mine.rank == 0 || captured == blocking) {
        EXPECT_TRUE(succeeded(sum_on_legacy_stream()));
      }
      meeting.arrive_and_wait();  // until here no call may wait for a GPU
      EXPECT_TRUE(ok(mine.driver.stream_synchronize(nullptr)));
    }
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 4));
    meeting.arrive_and_wait();
    EXPECT_TRUE(ok(mine.driver.stream_destroy(blocking)));
    expect_works(mine, memory, meeting);
  });
}

// Such a call changes nothing, because no rank can make it.
TEST_F(DeviceBadInput, WhatIsNotOfferedIsRefusedByName) {
  start_gpus(1);
  on_ranks(1, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    int source = 0;
    setoStream_t host_stream = nullptr;
    EXPECT_TRUE(failed(setoRecvAny(memory, kCount, setoFloat32, &source, mine.comm, mine.stream()), setoInvalidUsage,
                       "setoRecvAny: not on device memory in this version"));
    ASSERT_TRUE(succeeded(setoStreamCreate(&host_stream)));
    EXPECT_TRUE(failed(setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, host_stream), setoInvalidArgument,
                       "it is a host stream"));
    EXPECT_TRUE(succeeded(setoStreamDestroy(host_stream)));
    EXPECT_TRUE(succeeded(setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 1));
  });
}

TEST_F(DeviceBadInput, DeviceMemoryOnAHostCommunicator) {
  start_gpus(1);
  on_threads(1, [&](DeviceRank& mine) {
    setoConfig_t config = device_config();
    setoUniqueId id{};
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, 1, id, 0, &config)));  // opens the driver
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    config.memory = setoMemoryHost;
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, 1, id, 0, &config)));
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    EXPECT_TRUE(failed(setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, nullptr), setoInvalidArgument,
                       "but this communicator works on host memory"));
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
  });
}

TEST_F(DeviceBadInput, RanksOnOneStreamAreRefused) {
  start_gpus(1);
  cuda::Stream shared = make_stream();
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    const setoResult_t result =
        setoAllReduce(memory, memory, kCount, setoFloat32, setoSum, mine.comm, reinterpret_cast<setoStream_t>(shared));
    if (result != setoSuccess) {
      EXPECT_TRUE(failed(result, setoInvalidUsage, "has launched the same operation on it"));
    }
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (settled(mine.comm) == setoSuccess) ASSERT_FALSE(until.passed());
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  });
  EXPECT_TRUE(ok(driver().stream_destroy(shared)));
}

}  // namespace
}  // namespace seto::testing

// Launches that the driver refuses: the call and the rank are named on all ranks, and no kernel of another rank waits for ever.
#include <barrier>
#include <utility>

#include "src/core/device_relay/relay.h"
#include "tests/device_memory/device_faults.h"
#include "tests/device_memory/lent_calls.h"

namespace seto::testing {
namespace {

constexpr int kPair = 2;
constexpr const char* kRefused = "cuLaunchKernelEx:701";  // too many resources requested

class DeviceRefusedLaunches : public DeviceFaults {
 protected:
  using Issue = std::function<setoResult_t(DeviceRank&, float*)>;

  // Rank 0 makes the call, and the driver fails; the other ranks make theirs and wait.
  void refuse(const Issue& issue, const std::string& error, const std::string& call, const Variables& variables = {}) {
    SETO_NEEDS_STAND_IN();
    if (!std::exchange(is_started_, true)) start_gpus(kPair, variables);
    std::barrier meeting(kPair);
    on_ranks(kPair, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(2 * kLent, 1));
      if (captures_before_) {
        const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(sum(mine, memory))); });
      }
      EXPECT_TRUE(succeeded(setoBarrier(mine.comm, mine.stream())));
      mine.synchronize();
      meeting.arrive_and_wait();
      if (mine.rank == 1) {
        EXPECT_TRUE(succeeded(issue(mine, memory)));
      }
      meeting.arrive_and_wait();  // its launch is not the one that fails
      if (mine.rank == 0) {
        inject(error);
        const setoResult_t result = issue(mine, memory);
        EXPECT_NE(result, setoSuccess);
        EXPECT_NE(std::string(setoGetLastError(nullptr)).find(call), std::string::npos) << setoGetLastError(nullptr);
        inject("");
      }
      expect_failed(mine, "rank 0 could not launch its call of ");
      expect_failed(mine, call);
      mine.synchronize();
      abort(mine);
      expect_usable(mine, memory);
    });
  }
  static setoResult_t sum_of_count(DeviceRank& mine, float* memory) { return sum(mine, memory); }
  // Rank 0 captures it, and rank 1 launches it.
  static setoResult_t captured_sum(DeviceRank& mine, float* memory) {
    if (mine.rank == 1) return sum(mine, memory);
    cuda::Graph graph = nullptr;
    EXPECT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::relaxed)));
    const setoResult_t result = sum(mine, memory);
    EXPECT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
    return result;
  }
  static std::string refused(const std::string& call, const std::string& function = "cuLaunchKernelEx") {
    return call + ": " + function;
  }

  bool captures_before_ = false;

 private:
  bool is_started_ = false;
};

TEST_F(DeviceRefusedLaunches, ACollective) {
  refuse([](DeviceRank& mine, float* memory) { return sum(mine, memory); }, kRefused, refused("all_reduce of 1000 float, sum"));
}

TEST_F(DeviceRefusedLaunches, ACollectiveThatLends) {
  refuse([](DeviceRank& mine, float* memory) { return sum(mine, memory, kLent); }, kRefused,
         refused("all_reduce of 13000 float, sum"));
}

TEST_F(DeviceRefusedLaunches, ACollectiveBetweenGpusThatDoNotReachEachOther) {
  refuse([](DeviceRank& mine, float* memory) { return sum(mine, memory); }, kRefused, refused("all_reduce of 1000 float, sum"),
         {{"SOFTWARE_GPU_PEERS", "none"}});
}

// The second launch of the group fails, of the calls of another type. The calls of the first one have ended, or are stopped.
TEST_F(DeviceRefusedLaunches, TheSecondLaunchOfAGroup) {
  refuse(
      [](DeviceRank& mine, float* memory) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(succeeded(sum(mine, memory)));
        for (int i = 0; i < 3; ++i)
          EXPECT_TRUE(succeeded(setoAllReduce(memory, memory, 9, setoInt32, setoMax, mine.comm, mine.stream())));
        return setoGroupEnd();
      },
      "cuLaunchKernelEx:701:2", refused("all_reduce of 9 int32, max and the 2 calls after it in its launch"));
}

TEST_F(DeviceRefusedLaunches, SendsAndReceives) {
  refuse(
      [](DeviceRank& mine, float* memory) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        EXPECT_TRUE(succeeded(send(mine, memory, kCount, 1 - mine.rank)));
        EXPECT_TRUE(succeeded(receive(mine, memory + kCount, kCount, 1 - mine.rank)));
        return setoGroupEnd();
      },
      kRefused, refused("2 sends and receives"));
}

TEST_F(DeviceRefusedLaunches, AReceiveBetweenGpusThatDoNotReachEachOther) {
  refuse(
      [](DeviceRank& mine, float* memory) { return mine.rank == 0 ? send(mine, memory, kLent) : receive(mine, memory, kLent); },
      kRefused, refused("send of 13000 float to rank 1"), {{"SOFTWARE_GPU_PEERS", "none"}});
}

// The events and the copy of a program that lie around a kernel in its stream.
TEST_F(DeviceRefusedLaunches, AnEventOrACopy) {
  const Issue issue = [](DeviceRank& mine, float* memory) { return sum(mine, memory, kLent); };
  const std::string call = "all_reduce of 13000 float, sum";
  refuse(issue, "cuEventRecord:999:1", refused(call, "cuEventRecord"));
  refuse(issue, "cuEventRecord:999:2", refused(call, "cuEventRecord"));
  refuse(issue, "cuMemcpyHtoDAsync:999:1", refused(call, "cuMemcpyHtoDAsync"));
}

TEST_F(DeviceRefusedLaunches, ACallThatIsCaptured) { refuse(captured_sum, kRefused, refused("all_reduce of 1000 float, sum")); }

// Once a launch was captured, others are announced by host functions. A launch that fails before its stream has the function
// frees what it would have told.
TEST_F(DeviceRefusedLaunches, AnAnnouncedCallKeepsNoAnnouncement) {
  SETO_NEEDS_STAND_IN();
  captures_before_ = true;
  const std::string call = "all_reduce of 1000 float, sum";
  for (const std::string function : {"cuEventRecord", "cuLaunchHostFunc"}) {
    const std::size_t before = Relay::announcements();
    refuse(sum_of_count, function + ":999:1", refused(call, function), {{"SOFTWARE_GPU_PEERS", "none"}});
    EXPECT_EQ(Relay::announcements(), before + kPair) << "those of the two graphs";
  }
}

TEST_F(DeviceRefusedLaunches, ACapturedCallKeepsNoAnnouncement) {
  const std::size_t before = Relay::announcements();
  refuse(captured_sum, "cuLaunchHostFunc:999:1", refused("all_reduce of 1000 float, sum", "cuLaunchHostFunc"),
         {{"SOFTWARE_GPU_PEERS", "none"}});
  EXPECT_EQ(Relay::announcements(), before);
}

}  // namespace
}  // namespace seto::testing

// The end of communicators, and of memory, while messages are not taken by their receivers.
#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

constexpr int kPair = 2;
constexpr std::size_t kLong = 400'000;  // more than the slots of a pair hold
constexpr unsigned kSoonMs = 300;

class DeviceUntakenMessages : public DeviceHosts {
 protected:
  void SetUp() override {
    setenv("SETO_MEMORY", "device", 1);  // for setoMemAlloc
    DeviceHosts::SetUp();
  }
  void TearDown() override {
    unsetenv("SETO_MEMORY");
    DeviceHosts::TearDown();
  }

  static constexpr const char* kNotReceived = "send of 400000 float to rank 1 was not received";

  // Rank 0 sends what rank 1 never receives, calls `end`, and both hear of the deadline.
  void send_in_vain(const std::function<void(DeviceRank&, float*)>& end, const std::string& reason = kNotReceived) {
    start_gpus(kPair);
    on_ranks(
        kPair, [&](DeviceRank& mine) { send_in_vain(mine, end, reason); }, device_config(kSoonMs));
  }
  static void send_in_vain(DeviceRank& mine, const std::function<void(DeviceRank&, float*)>& end, const std::string& reason) {
    auto* const usable = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 0) {
      void* memory = nullptr;
      EXPECT_TRUE(succeeded(setoMemAlloc(&memory, kLong * sizeof(float))));
      EXPECT_TRUE(succeeded(send(mine, static_cast<float*>(memory), kLong)));
      end(mine, static_cast<float*>(memory));
    }
    if (mine.comm != nullptr) {
      expect_failed(mine, reason);
      abort(mine);
    }
    expect_usable(mine, usable);
  }
};

TEST_F(DeviceUntakenMessages, FreeingTheirMemoryWaitsUntilTheDeadline) {
  send_in_vain([](DeviceRank&, float* memory) { EXPECT_TRUE(succeeded(setoMemFree(memory))); });
}

TEST_F(DeviceUntakenMessages, FreeingOtherMemoryOfTheGpuWaitsUntilTheDeadline) {
  send_in_vain([](DeviceRank& mine, float* memory) {
    cuda::DevicePointer other = 0;
    EXPECT_TRUE(ok(mine.driver.mem_alloc(&other, 100)));
    EXPECT_TRUE(ok(mine.driver.mem_free(other)));
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
  });
}

TEST_F(DeviceUntakenMessages, FinalizeNamesThem) {
  send_in_vain([](DeviceRank& mine, float* memory) {
    EXPECT_TRUE(failed(setoCommFinalize(mine.comm), setoTimeout, kNotReceived));
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
  });
}

TEST_F(DeviceUntakenMessages, DestroyNamesThem) {
  send_in_vain([](DeviceRank& mine, float* memory) {
    EXPECT_TRUE(failed(setoCommDestroy(mine.comm), setoTimeout, kNotReceived));
    mine.comm = nullptr;
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
  });
}

TEST_F(DeviceUntakenMessages, AnAbortWhileTheirMemoryIsFreedEndsBoth) {
  start_gpus(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    const auto free_and_abort = [](DeviceRank& sender, float* memory) {
      std::thread freeing([&] { EXPECT_TRUE(succeeded(setoMemFree(memory))); });
      abort(sender);
      freeing.join();
    };
    send_in_vain(mine, free_and_abort, "setoCommAbort was called on rank 0");
  });
}

TEST_F(DeviceUntakenMessages, FinalizeAndDestroyNameThemBetweenHosts) {
  start_gpus(kPair);
  for (const bool finalizes : {true, false}) {
    const auto end = [finalizes](DeviceRank& mine, float* memory) {
      if (finalizes) {
        EXPECT_TRUE(failed(setoCommFinalize(mine.comm), setoTimeout, kNotReceived));
      } else {
        EXPECT_TRUE(failed(setoCommDestroy(mine.comm), setoTimeout, kNotReceived));
        mine.comm = nullptr;
      }
      EXPECT_TRUE(succeeded(setoMemFree(memory)));
    };
    on_hosts(
        {kPair, 1}, [&](DeviceRank& mine) { send_in_vain(mine, end, kNotReceived); }, device_config(kSoonMs));
  }
}

// It lies in the slots of the pair, so the sender has ended, and its memory is free. No rank misses the message.
TEST_F(DeviceUntakenMessages, AShortOneKeepsNoRankFromEnding) {
  start_gpus(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    if (mine.rank == 0) {
      void* memory = nullptr;
      EXPECT_TRUE(succeeded(setoMemAlloc(&memory, kCount * sizeof(float))));
      EXPECT_TRUE(succeeded(send(mine, static_cast<float*>(memory))));
      EXPECT_TRUE(succeeded(setoMemFree(memory)));
    }
    EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    mine.comm = nullptr;
  });
}

TEST_F(DeviceUntakenMessages, AReceiveInVainNamesItselfAtTheEnd) {
  start_gpus(kPair);
  on_ranks(
      kPair,
      [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kCount, 1));
        const std::string reason = "receive of 1000 float from rank 0 was not sent";
        if (mine.rank == 1) {
          EXPECT_TRUE(succeeded(receive(mine, memory)));
          EXPECT_TRUE(failed(setoCommFinalize(mine.comm), setoTimeout, reason));
        }
        expect_failed(mine, reason);
        abort(mine);
        expect_usable(mine, memory);
      },
      device_config(kSoonMs));
}

}  // namespace
}  // namespace seto::testing

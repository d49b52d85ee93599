// Several communicators on one GPU: their kernels begin in the order of their launches.
#include <barrier>
#include <future>

#include "tests/device_memory/device_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 60'000;  // for as many blocks as a GPU of one multiprocessor holds

std::uint64_t launched() { return software_gpu::driver::control<std::uint64_t()>("softwareGpuLaunched")(); }

class DeviceLaunchOrder : public DeviceMemory {
 protected:
  // A second communicator and a second stream beside those of the rank.
  class Second final {
   public:
    explicit Second(DeviceRank& mine) : mine_(mine) {
      EXPECT_TRUE(ok(mine.driver.stream_create_with_priority(&stream, cuda::kStreamNonBlocking, 0)));
      EXPECT_TRUE(succeeded(setoCommSplit(mine.comm, 0, mine.rank, &comm, nullptr)));
    }
    ~Second() {
      EXPECT_TRUE(ok(mine_.driver.stream_synchronize(stream)));
      if (comm != nullptr) (void)setoCommDestroy(comm);  // one that has failed says so again
      EXPECT_TRUE(ok(mine_.driver.stream_destroy(stream)));
    }
    Second(const Second&) = delete;
    Second& operator=(const Second&) = delete;

    cuda::Stream stream = nullptr;
    setoComm_t comm = nullptr;

   private:
    DeviceRank& mine_;
  };

  static setoResult_t double_it(std::int32_t* memory, setoComm_t comm, cuda::Stream stream, std::size_t count = kCount) {
    return setoAllReduce(memory, memory, count, setoInt32, setoSum, comm, reinterpret_cast<setoStream_t>(stream));
  }
  static std::vector<std::int32_t> all_of(std::int32_t value, std::size_t count = kCount) {
    return std::vector<std::int32_t>(count, value);
  }
};

// On GPU 0 the first call waits for other work of its stream. Were the second to take the GPU, then the first on GPU 1 would
// hold that one, each would wait for its peer, and none could begin.
TEST_F(DeviceLaunchOrder, ALaterCallTakesNoGpuFromAnEarlierOneThatWaits) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kRanks, {{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
  std::barrier both(kRanks);
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Second second(mine);
    auto* const memory = mine.upload(all_of(1));
    auto* const other = mine.upload(all_of(1));
    ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.cuda_stream)));  // binds the shapes
    ASSERT_TRUE(succeeded(double_it(other, second.comm, second.stream)));
    mine.synchronize();
    ASSERT_TRUE(ok(mine.driver.stream_synchronize(second.stream)));
    both.arrive_and_wait();
    const std::uint64_t before = launched();
    both.arrive_and_wait();
    const auto issue = [&] {
      EXPECT_TRUE(succeeded(double_it(memory, mine.comm, mine.cuda_stream)));
      EXPECT_TRUE(succeeded(double_it(other, second.comm, second.stream)));
    };
    if (mine.rank == 0) {
      const auto wait = [](void* gate) { static_cast<const std::shared_future<void>*>(gate)->wait(); };
      EXPECT_TRUE(ok(mine.driver.launch_host_func(mine.cuda_stream, wait, const_cast<std::shared_future<void>*>(&opened))));
      issue();
      // This work, issued after the calls, has run: without an order they would have begun, too.
      cuda::Stream third = nullptr;
      EXPECT_TRUE(ok(mine.driver.stream_create_with_priority(&third, cuda::kStreamNonBlocking, 0)));
      EXPECT_TRUE(ok(mine.driver.memset_d8_async(reinterpret_cast<cuda::DevicePointer>(mine.allocate(4)), 0, 4, third)));
      EXPECT_TRUE(ok(mine.driver.stream_synchronize(third)));
      EXPECT_EQ(launched(), before) << "the second call has taken the GPU";
      EXPECT_TRUE(ok(mine.driver.stream_destroy(third)));
    }
    both.arrive_and_wait();
    if (mine.rank == 1) {
      issue();
      open.set_value();
    }
    EXPECT_EQ(mine.read(memory, kCount), all_of(4));
    EXPECT_TRUE(ok(mine.driver.stream_synchronize(second.stream)));
    EXPECT_EQ(mine.read(other, kCount), all_of(4));
  });
}

// Threads have no order among each other, so ranks may differ in it as long as the kernels fit.
TEST_F(DeviceLaunchOrder, CallsOfTwoThreadsMeetInAnyOrder) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Second second(mine);
    auto* const memory = mine.upload(all_of(1, 100));
    auto* const other = mine.upload(all_of(1, 100));
    const auto call = [&](std::int32_t* data, setoComm_t comm, cuda::Stream stream) {
      EXPECT_TRUE(ok(mine.driver.ctx_set_current(mine.context)));
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(succeeded(double_it(data, comm, stream, 100)));
    };
    if (mine.rank == 0) call(memory, mine.comm, mine.cuda_stream);
    std::thread(call, other, second.comm, second.stream).join();
    if (mine.rank == 1) call(memory, mine.comm, mine.cuda_stream);
    EXPECT_EQ(mine.read(memory, 100), all_of(8, 100));
    EXPECT_TRUE(ok(mine.driver.stream_synchronize(second.stream)));
    EXPECT_EQ(mine.read(other, 100), all_of(8, 100));
  });
}

// Each rank first sends twice, more than the slots hold, and then receives twice.
TEST_F(DeviceLaunchOrder, MessagesMeetInAnyOrder) {
  constexpr std::size_t kLong = 300'000;
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Second second(mine);
    const setoComm_t to_send = mine.rank == 0 ? mine.comm : second.comm;
    const setoComm_t to_receive = mine.rank == 0 ? second.comm : mine.comm;
    const auto second_stream = reinterpret_cast<setoStream_t>(second.stream);
    auto* const sent = mine.upload(all_of(mine.rank, kLong));
    auto* const received = mine.upload(all_of(9, kLong));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(succeeded(setoSend(sent, kLong, setoInt32, 1 - mine.rank, to_send, second_stream)));
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(succeeded(setoRecv(received, kLong, setoInt32, 1 - mine.rank, to_receive, mine.stream())));
    EXPECT_EQ(mine.read(received, kLong), all_of(1 - mine.rank, kLong));
    EXPECT_TRUE(ok(mine.driver.stream_synchronize(second.stream)));
  });
}

// Nothing waits for an event of a communicator that has ended.
TEST_F(DeviceLaunchOrder, ACommunicatorMayEndBetweenCallsOfAnother) {
  start_gpus(kRanks);
  std::barrier both(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(all_of(1, 100));
    for (int round = 0; round < 3; ++round) {
      {
        Second second(mine);
        ASSERT_TRUE(succeeded(double_it(memory, second.comm, second.stream, 100)));
      }
      both.arrive_and_wait();
      EXPECT_TRUE(all_is_freed()) << "the event of the second communicator is there";
      both.arrive_and_wait();
      ASSERT_TRUE(succeeded(double_it(memory, mine.comm, mine.cuda_stream, 100)));
      mine.synchronize();
    }
    EXPECT_EQ(mine.read(memory, 100), all_of(64, 100));
  });
}

// Its kernel waits behind other work of the stream, and may never begin.
TEST_F(DeviceLaunchOrder, ACommunicatorThatHasFailedKeepsNoOtherWaiting) {
  start_gpus(kRanks);
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  on_ranks(kRanks, [&](DeviceRank& mine) {
    Second second(mine);
    auto* const memory = mine.upload(all_of(1, 100));
    auto* const other = mine.upload(all_of(1, 100));
    if (mine.rank == 0) {
      const auto wait = [](void* gate) { static_cast<const std::shared_future<void>*>(gate)->wait(); };
      EXPECT_TRUE(ok(mine.driver.launch_host_func(second.stream, wait, const_cast<std::shared_future<void>*>(&opened))));
      EXPECT_TRUE(succeeded(double_it(other, second.comm, second.stream, 100)));
      const Deadline until = Deadline::after_ms(kPatienceMs);
      setoResult_t state = setoSuccess;
      while (state == setoSuccess && !until.passed()) EXPECT_TRUE(succeeded(setoCommGetAsyncError(second.comm, &state)));
      EXPECT_NE(state, setoSuccess) << "rank 1 has aborted it";
    } else {
      EXPECT_TRUE(succeeded(setoCommAbort(second.comm)));
      second.comm = nullptr;
    }
    EXPECT_TRUE(succeeded(double_it(memory, mine.comm, mine.cuda_stream, 100)));
    EXPECT_EQ(mine.read(memory, 100), all_of(2, 100)) << "while the kernel of the other one has not begun";
    if (mine.rank == 0) open.set_value();
  });
}

}  // namespace
}  // namespace seto::testing

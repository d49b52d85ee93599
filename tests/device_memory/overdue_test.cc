// Calls that have passed their deadline, and how long that keeps the watcher.
#include <barrier>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

class DeviceOverdue : public DeviceFaults {};

// The kernel of an overdue call has no place on its GPU, so it cannot say for whom it waits. The deadline of a call of another
// communicator passes long before the time that the first one has for its answer.
TEST_F(DeviceOverdue, AKernelThatCannotAnswerDelaysNoOtherDeadline) {
  SETO_NEEDS_STAND_IN();
  start_gpus(2, {{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
  const cuda::Kernel wait_for_flag = kernel("wait_for_flag");
  std::barrier both(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    setoComm_t second = nullptr;
    ASSERT_TRUE(succeeded(setoCommSplit(mine.comm, 0, mine.rank, &second, nullptr)));
    both.arrive_and_wait();
    if (mine.rank == 0) {
      const cuda::Stream of_user = make_stream();
      unsigned* const words = pinned_words(2);
      unsigned *flag = words, *ended = words + 1;
      ASSERT_TRUE(ok(launch(wait_for_flag, 2, 1024, of_user, flag, ended)));  // all that the GPU holds
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      both.arrive_and_wait();
      std::swap(mine.comm, second);
      expect_failed(mine, "rank 0 never came");  // as rank 1 says
      std::swap(mine.comm, second);
      setoResult_t state = setoSuccess;
      EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
      EXPECT_EQ(state, setoSuccess) << "the overdue call had 10 s for its answer: " << setoGetLastError(mine.comm);
      __atomic_store_n(flag, 1U, __ATOMIC_RELEASE);
      EXPECT_TRUE(ok(mine.driver.stream_synchronize(of_user)));
    } else {
      both.arrive_and_wait();
      setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
      call.deadlineMs = 600;
      EXPECT_TRUE(succeeded(setoAllReduceConfig(memory, memory, kCount, setoFloat32, setoSum, second, mine.stream(), &call)));
    }
    expect_failed(mine, "did not end within 300 ms (its deadlineMs): rank 1 never came");
    (void)setoCommAbort(second);
    abort(mine);
    expect_usable(mine, memory);
  });
}

// The GPU fails while the call is asked for whom it waits: that is the error, and it comes at once.
TEST_F(DeviceOverdue, AGpuThatFailsBeforeTheAnswerIsSaid) {
  SETO_NEEDS_STAND_IN();
  start_gpus(2, {{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
  const cuda::Kernel wait_for_flag = kernel("wait_for_flag");
  std::barrier both(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    both.arrive_and_wait();
    if (mine.rank == 0) {
      const cuda::Stream of_user = make_stream();
      unsigned* const words = pinned_words(2);
      unsigned *flag = words, *ended = words + 1;
      ASSERT_TRUE(ok(launch(wait_for_flag, 2, 1024, of_user, flag, ended)));
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      const Deadline overdue = Deadline::after_ms(600);
      while (!overdue.passed()) std::this_thread::yield();
      inject("cuEventQuery:719:1-");
      expect_failed(mine, "the kernel of rank 0 failed");
      inject("");
      __atomic_store_n(flag, 1U, __ATOMIC_RELEASE);
      EXPECT_TRUE(ok(mine.driver.stream_synchronize(of_user)));
    } else {
      expect_failed(mine, "the kernel of rank 0 failed");
    }
    abort(mine);
  });
}

}  // namespace
}  // namespace seto::testing

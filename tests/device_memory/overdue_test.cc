// Calls that have passed their deadline, and how long that keeps the watcher.
#include <barrier>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

// GPUs of one multiprocessor, which a kernel of the program can fill, so that those of the library find no place.
class DeviceOverdue : public DeviceFaults {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    DeviceFaults::SetUp();
    if (IsSkipped()) return;
    start_gpus(2, {{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
    wait_for_flag_ = kernel("wait_for_flag");  // loading waits for kernels, so it comes first
  }

  // Fills the GPU of the calling thread until its end.
  class FullGpu final {
   public:
    explicit FullGpu(const DeviceOverdue& test) : test_(test) {
      void* values[] = {&flag_, &ended_};
      EXPECT_TRUE(ok(test.driver().launch_kernel(test.wait_for_flag_, 2, 1, 1, 1024, 1, 1, 0, stream_, values, nullptr)));
    }
    ~FullGpu() {
      __atomic_store_n(flag_, 1U, __ATOMIC_RELEASE);
      EXPECT_TRUE(ok(test_.driver().stream_synchronize(stream_)));
    }
    FullGpu(const FullGpu&) = delete;
    FullGpu& operator=(const FullGpu&) = delete;

   private:
    const DeviceOverdue& test_;
    const cuda::Stream stream_ = test_.make_stream();
    unsigned* flag_ = test_.pinned_words(2);
    unsigned* ended_ = flag_ + 1;
  };

 private:
  cuda::Kernel wait_for_flag_ = nullptr;
};

// The kernel of an overdue call has no place on its GPU, so it cannot say for whom it waits. The deadline of a call of another
// communicator passes long before the time that the first one has for its answer.
TEST_F(DeviceOverdue, AKernelThatCannotAnswerDelaysNoOtherDeadline) {
  std::barrier both(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    setoComm_t second = nullptr;
    ASSERT_TRUE(succeeded(setoCommSplit(mine.comm, 0, mine.rank, &second, nullptr)));
    both.arrive_and_wait();
    if (mine.rank == 0) {
      const FullGpu full(*this);
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      both.arrive_and_wait();
      std::swap(mine.comm, second);
      expect_failed(mine, "rank 0 never came");  // as rank 1 says
      std::swap(mine.comm, second);
      setoResult_t state = setoSuccess;
      EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
      EXPECT_EQ(state, setoSuccess) << "the overdue call had 10 s for its answer: " << setoGetLastError(mine.comm);
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
  std::barrier both(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    both.arrive_and_wait();
    if (mine.rank == 0) {
      const FullGpu full(*this);
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      const Deadline overdue = Deadline::after_ms(600);
      while (!overdue.passed()) std::this_thread::yield();
      inject("cuEventQuery:719:1-");
      expect_failed(mine, "the kernel of rank 0 failed");
      inject("");
    } else {
      expect_failed(mine, "the kernel of rank 0 failed");
    }
    abort(mine);
  });
}

}  // namespace
}  // namespace seto::testing

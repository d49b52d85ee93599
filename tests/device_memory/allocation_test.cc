// Device memory of setoMemAlloc, in one process.
#include <gmock/gmock.h>

#include <cstring>

#include "src/core/device_memory/memory/device_allocations.h"
#include "tests/device_memory/device_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kCount = 13'000;
constexpr std::size_t kSize = kCount * sizeof(std::int32_t);

class DeviceAllocation : public DeviceMemory {
 protected:
  void start_gpu() {
    setenv("SETO_MEMORY", "device", 1);
    start_gpus(1);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(ok(driver().mem_get_info(&free_, &total_)));
  }
  [[nodiscard]] std::size_t in_use() const {
    std::size_t free = 0, total = 0;
    EXPECT_TRUE(ok(driver().mem_get_info(&free, &total)));
    return free_ - free;
  }
  static void* allocated(std::size_t size) {
    void* memory = nullptr;
    EXPECT_TRUE(succeeded(setoMemAlloc(&memory, size)));
    return memory;
  }
  [[nodiscard]] bool is_device_memory(void* memory) const {
    std::uint32_t type = 0;
    cuda::PointerAttribute attributes[] = {cuda::PointerAttribute::memory_type};
    void* into[] = {&type};
    EXPECT_TRUE(ok(driver().pointer_get_attributes(1, attributes, into, reinterpret_cast<cuda::DevicePointer>(memory))));
    return type == static_cast<std::uint32_t>(cuda::MemoryType::device);
  }

  void TearDown() override {
    unsetenv("SETO_MEMORY");
    DeviceMemory::TearDown();
  }

 private:
  std::size_t free_ = 0, total_ = 0;
};

TEST_F(DeviceAllocation, IsGivenBackAtOnce) {
  start_gpu();
  void* const one = allocated(kSize);
  void* const other = allocated(std::size_t{3} << 20);
  EXPECT_TRUE(is_device_memory(one));
  EXPECT_GE(in_use(), kSize + (std::size_t{3} << 20));
  EXPECT_TRUE(failed(setoMemFree(static_cast<char*>(one) + 256), setoInvalidArgument, "is not from setoMemAlloc"));
  EXPECT_TRUE(succeeded(setoMemFree(one)));
  EXPECT_TRUE(failed(setoMemFree(one), setoInvalidArgument, "is not from setoMemAlloc, or was freed"));
  EXPECT_TRUE(succeeded(setoMemFree(other)));
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(DeviceAllocation, OnlySetoMemoryDeviceChoosesAGpu) {
  start_gpu();
  std::thread([&] {  // has no context
    void* memory = nullptr;
    EXPECT_TRUE(failed(setoMemAlloc(&memory, kSize), setoInvalidUsage, "device memory cannot be used"));
  })
      .join();
  for (const char* const kind : {"host", "auto"}) {
    setenv("SETO_MEMORY", kind, 1);
    void* const memory = allocated(kSize);
    EXPECT_FALSE(is_device_memory(memory)) << kind;
    std::memset(memory, 1, kSize);
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
  }
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(DeviceAllocation, FailuresLeaveNothing) {
  SETO_NEEDS_STAND_IN();
  start_gpu();
  for (const char* const call : {"cuMemAddressReserve:2", "cuMemMap:2", "cuMemSetAccess:2", "cuMemCreate:2"}) {
    inject(call);
    void* memory = nullptr;
    EXPECT_TRUE(failed(setoMemAlloc(&memory, kSize), setoSystemError, "bytes of memory on GPU 0: ")) << call;
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(in_use(), 0U) << call;
  }
  void* memory = nullptr;
  EXPECT_TRUE(failed(setoMemAlloc(&memory, std::size_t{1} << 40), setoSystemError, "no 1099511627776 bytes of memory on GPU 0"));
}

TEST_F(DeviceAllocation, WithoutDescriptorsItIsOrdinaryMemory) {
  SETO_NEEDS_STAND_IN();
  start_gpu();
  inject("cuMemCreate:801:1-");
  void* const memory = allocated(kSize);
  const auto found = DeviceAllocations::of_process().find(reinterpret_cast<cuda::DevicePointer>(memory) + kSize - 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->handle, 0U);
  EXPECT_TRUE(succeeded(setoMemFree(memory)));
  EXPECT_EQ(in_use(), 0U);
}

// The calls of the driver that it needs do not disturb the capture.
TEST_F(DeviceAllocation, WhileAStreamIsCaptured) {
  start_gpu();
  const cuda::Stream stream = make_stream();
  for (const bool has_descriptors : {true, false}) {
    if (!has_descriptors && software_gpu::driver::on_system_driver()) break;
    if (!has_descriptors) inject("cuMemCreate:801:1-");
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(driver().stream_begin_capture(stream, cuda::CaptureMode::global)));
    void* const memory = allocated(kSize);
    EXPECT_TRUE(ok(driver().stream_end_capture(stream, &graph)));
    EXPECT_TRUE(ok(driver().graph_destroy(graph)));
    const auto words = reinterpret_cast<cuda::DevicePointer>(memory);
    ASSERT_TRUE(ok(driver().memset_d32_async(words, 7, kCount, stream)));
    EXPECT_EQ(words_at(words, kCount, stream), std::vector<unsigned>(kCount, 7)) << has_descriptors;
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
  }
  EXPECT_EQ(in_use(), 0U);
}

// The memory of a kernel that runs is not unmapped under it.
TEST_F(DeviceAllocation, FreeingWaitsForKernels) {
  SETO_NEEDS_STAND_IN();
  start_gpu();
  void* const memory = allocated(kSize);
  const WaitingKernel waiting = launch_waiting_kernel(make_stream());
  std::thread freeing([&] {
    EXPECT_TRUE(ok(driver().ctx_set_current(context())));
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
    EXPECT_EQ(waiting.has_ended(), 1U);
  });
  waiting.let_end();
  freeing.join();
}

TEST_F(DeviceAllocation, GpusReadItInTheirPeers) {
  setenv("SETO_LOG", "debug", 1);
  ::testing::internal::CaptureStderr();
  setenv("SETO_MEMORY", "device", 1);
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const input = static_cast<std::int32_t*>(allocated(kSize));
    auto* const output = static_cast<std::int32_t*>(allocated(kSize));
    mine.write(input, std::vector<std::int32_t>(kCount, mine.rank + 1));
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    EXPECT_TRUE(succeeded(setoAlgorithmId("two_shot", &config.algorithm)));
    ASSERT_TRUE(succeeded(setoAllReduceConfig(input, output, kCount, setoInt32, setoSum, mine.comm, mine.stream(), &config)));
    EXPECT_EQ(mine.read(output, kCount), std::vector<std::int32_t>(kCount, 3));
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    mine.comm = nullptr;
    EXPECT_TRUE(succeeded(setoMemFree(input)));
    EXPECT_TRUE(succeeded(setoMemFree(output)));
  });
  unsetenv("SETO_LOG");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("read in the buffers of the peers"));
  EXPECT_THAT(logged, Not(HasSubstr("cannot read a buffer")));
}

}  // namespace
}  // namespace seto::testing

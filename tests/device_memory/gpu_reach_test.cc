// Trials of memory of a GPU on the stand-in for the driver, over fake RDMA devices.
#include "src/core/gpu_direct/gpu_reach.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "src/core/gpu_direct/trial_memory.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"
#include "transports/rdma/gpu_memory/gpu_reach.h"

namespace seto::software_gpu::driver {
namespace {

using support::FakeFabric;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kPatienceMs = 120'000;  // ends only a test that fails

class DeviceReach : public StandInTest {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    fabric.add_ethernet("mlx5_0", "10.0.0.1");
  }
  void begin(const Variables& variables = {}) {
    start(variables);
    if (HasFatalFailure()) return;
    auto made = TrialMemory::create(driver(), 0);
    ASSERT_TRUE(ok(made.status()));
    memory = std::move(made).value();
  }
  // On a machine without peermem.
  GpuReach find() {
    const std::unique_ptr<rdma::Verbs> verbs = fabric.verbs();
    GpuReach reach = rdma::find_gpu_reach(*verbs, "mlx5_0", *memory, Deadline::after_ms(kPatienceMs), "/nowhere");
    EXPECT_EQ(fabric.registered_bytes(), 0U) << "something is still registered";
    return reach;
  }

  FakeFabric fabric{testing::chosen_seed(), FakeFabric::Drive::by_thread};
  std::unique_ptr<TrialMemory> memory;
};

TEST_F(DeviceReach, GoesByDmaBufAndTheFlushOfTheDriver) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  fabric.hold_writes_to_dma_bufs();
  control<void(void (*)(void*), void*)>("softwareGpuOnFlush")(
      [](void* held) { static_cast<FakeFabric*>(held)->show_held_writes(); }, &fabric);
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_TRUE(reach.writes) << reach.why_less;
  EXPECT_EQ(reach.why_less, "");
  EXPECT_EQ(words_of(reach), "reads and writes it by dma-buf");
}

TEST_F(DeviceReach, CallsNoFlushWhereWritesAreInOrder) {
  begin({{"SOFTWARE_GPU_WRITE_ORDER", "100"}, {"SOFTWARE_GPU_ERRORS", "cuFlushGPUDirectRDMAWrites:999:1-"}});
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(find().writes);
}

TEST_F(DeviceReach, IsForReadingOnlyWithoutAFlush) {
  begin({{"SOFTWARE_GPU_FLUSH_OPTIONS", "2"}});
  ASSERT_FALSE(HasFatalFailure());
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_FALSE(reach.writes);
  EXPECT_THAT(reach.why_less, HasSubstr("it only reads: the driver offers no flush"));
  EXPECT_EQ(words_of(reach), "only reads it, by dma-buf");
}

TEST_F(DeviceReach, IsNoneWithoutDmaBufAndPeermem) {
  begin({{"SOFTWARE_GPU_DMA_BUF", "0"}});
  ASSERT_FALSE(HasFatalFailure());
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::bounce);
  EXPECT_THAT(reach.why_less, AllOf(StartsWith("dma-buf: the CUDA driver offers none"), HasSubstr("; peermem: the module")));
  EXPECT_EQ(words_of(reach), "does not reach it");
}

TEST_F(DeviceReach, EachCallOfTheDriverThatFailsHasAReason) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  for (const char* const call : {"cuMemGetHandleForAddressRange", "cuMemcpyHtoDAsync"}) {
    inject(std::string(call) + ":801:1-");
    const GpuReach reach = find();
    EXPECT_EQ(reach.way, GpuWay::bounce) << call;
    EXPECT_THAT(reach.why_less, StartsWith("dma-buf: " + std::string(call) + " failed")) << call;
  }
  // The second wait for the stream is that of the copy back.
  for (const auto& [call, error] : {std::pair{"cuFlushGPUDirectRDMAWrites", "cuFlushGPUDirectRDMAWrites:801"},
                                    {"cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync:801"},
                                    {"cuStreamSynchronize", "cuStreamSynchronize:801:2"}}) {
    inject(error);
    const GpuReach reach = find();
    EXPECT_EQ(reach.way, GpuWay::dma_buf) << call;
    EXPECT_FALSE(reach.writes) << call;
    EXPECT_THAT(reach.why_less, StartsWith("dma-buf: it only reads: " + std::string(call) + " failed")) << call;
  }
}

TEST_F(DeviceReach, NeedsMemoryForTheTrial) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  for (const char* const call : {"cuMemAlloc", "cuStreamCreateWithPriority", "cuDeviceGetAttribute"}) {
    inject(std::string(call) + ":2");
    const auto made = TrialMemory::create(driver(), 0);
    ASSERT_FALSE(made.ok()) << call;
    EXPECT_THAT(std::string(made.status().text()), StartsWith(std::string(call) + " failed"));
  }
}

}  // namespace
}  // namespace seto::software_gpu::driver

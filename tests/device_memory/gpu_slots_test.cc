// Slots of messages in memory of a GPU: made on the stand-in for the driver, read by fake RDMA devices, copied to the host.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/core/gpu_direct/message_memory.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"
#include "transports/rdma/connect/devices.h"
#include "transports/rdma/pipes/named_registrations.h"

namespace seto::software_gpu::driver {
namespace {

using support::FakeFabric;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kPatienceMs = 60'000;  // ends only a test that fails
constexpr std::size_t kPlace = 70'000, kSize = 50'000;

class GpuSlotsOnHost : public StandInTest {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    fabric.add_ethernet("mlx5_0", "10.0.0.1");
  }
  GpuSlotMemory::Setup setup() {
    GpuSlotMemory::Setup made;
    made.driver = &driver();
    made.context = context();
    made.size = std::size_t{1} << 20;
    made.reach = {{"mlx5_0", GpuWay::dma_buf, false, ""}};
    return made;
  }
  void begin() {
    start();
    if (HasFatalFailure()) return;
    slots = std::make_unique<GpuSlotMemory>(setup());
    ASSERT_TRUE(ok(slots->prepare()));
    copy = std::make_shared<SlotCopy>(*slots);
    bytes.resize(kSize);
    for (std::size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
    const cuda::Stream stream = make_stream();
    const auto at = reinterpret_cast<cuda::DevicePointer>(slots->memory() + kPlace);
    EXPECT_TRUE(ok(driver().memcpy_htod_async(at, bytes.data(), kSize, stream)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
    EXPECT_TRUE(ok(driver().stream_destroy(stream)));
  }
  Result<const std::byte*> bring() {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (true) {
      const Result<const std::byte*> there = copy->bring(slots->memory() + kPlace);
      if (!there.ok() || there.value() != nullptr || until.passed()) return there;
    }
  }

  FakeFabric fabric{testing::chosen_seed()};
  std::unique_ptr<GpuSlotMemory> slots;
  std::shared_ptr<SlotCopy> copy;
  std::vector<std::byte> bytes;
};

TEST_F(GpuSlotsOnHost, ComeToTheHostInTheirPlaces) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  const SlotCopy::Part parts[] = {{kPlace, 1'000}, {kPlace + 20'000, 30'000}};
  copy->begin(parts);
  EXPECT_EQ(copy->brought(slots->memory() + kPlace), nullptr);
  const Result<const std::byte*> there = bring();
  ASSERT_TRUE(ok(there.status()));
  EXPECT_EQ(std::memcmp(there.value(), bytes.data(), 1'000), 0);
  EXPECT_EQ(std::memcmp(copy->brought(slots->memory() + kPlace + 20'000), bytes.data() + 20'000, 30'000), 0);
}

TEST_F(GpuSlotsOnHost, ACopyThatFailsSaysWhatToDo) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  for (const char* const call : {"cuMemcpyDtoHAsync", "cuStreamSynchronize"}) {
    inject(std::string(call) + ":999");
    copy->begin(std::vector<SlotCopy::Part>{{kPlace, kSize}});
    const Result<const std::byte*> there = bring();
    ASSERT_FALSE(there.ok()) << call;
    EXPECT_THAT(std::string(there.status().text()),
                AllOf(HasSubstr(std::string(call) + " failed"), HasSubstr("SETO_GPUDIRECT=off")));
    EXPECT_FALSE(copy->is_under_way());
  }
}

TEST_F(GpuSlotsOnHost, ComeToTheHostWhileTheProgramCapturesAStream) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().stream_begin_capture(stream, cuda::CaptureMode::global)));
  copy->begin(std::vector<SlotCopy::Part>{{kPlace, kSize}});
  EXPECT_TRUE(ok(bring().status()));
  cuda::Graph graph = nullptr;
  EXPECT_TRUE(ok(driver().stream_end_capture(stream, &graph))) << "a call of the copy has ended the capture";
  if (graph != nullptr) {
    EXPECT_TRUE(ok(driver().graph_destroy(graph)));
  }
  EXPECT_TRUE(ok(driver().stream_destroy(stream)));
}

// Registered by dma-buf, and read at the addresses of the GPU, for the device that a trial has shown to do so.
TEST_F(GpuSlotsOnHost, AreRegisteredForTheDevicesOfTheTrialOnly) {
  begin();
  ASSERT_FALSE(HasFatalFailure());
  fabric.add_ethernet("mlx5_1", "10.0.1.1");
  const std::unique_ptr<rdma::Verbs> verbs = fabric.verbs();
  const auto devices = rdma::Devices::open(*verbs, {{"mlx5_0", 0}, {"mlx5_1", 0}});
  ASSERT_TRUE(ok(devices.status()));
  rdma::NamedRegistrations registrations(*devices.value(), 0);
  EXPECT_TRUE(registrations.on("mlx5_0").use_if_named(slots->memory() + kPlace, kSize).has_value()) << "no limit counts it";
  EXPECT_TRUE(registrations.on("mlx5_0").is_of_gpu(slots->memory() + kPlace, kSize));
  EXPECT_FALSE(registrations.on("mlx5_1").use_if_named(slots->memory() + kPlace, kSize).has_value());
  EXPECT_EQ(fabric.registered_bytes(), slots->size());
  slots.reset();
  EXPECT_EQ(fabric.registered_bytes(), 0U);
}

// The rest goes with the driver: nothing of it stays behind a failure.
TEST_F(GpuSlotsOnHost, EachCallOfTheDriverMayFail) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  for (const char* const call : {"cuMemAlloc", "cuMemHostAlloc", "cuCtxGetStreamPriorityRange", "cuStreamCreateWithPriority",
                                 "cuMemGetHandleForAddressRange"}) {
    inject(std::string(call) + ":801");
    GpuSlotMemory refused(setup());
    const Status made = refused.prepare();
    ASSERT_FALSE(made.ok()) << call;
    EXPECT_THAT(std::string(made.text()), HasSubstr(std::string(call) + " failed"));
  }
  EXPECT_TRUE(ok(GpuSlotMemory(setup()).prepare()));
}

// No device of this machine was shown to read memory of the GPU.
TEST_F(GpuSlotsOnHost, AreNotMadeWithoutADevice) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  Config config;
  config.rdma = "off";
  EXPECT_FALSE(gpu_slots_for_messages(driver(), 0, context(), config).has_value());
}

}  // namespace
}  // namespace seto::software_gpu::driver

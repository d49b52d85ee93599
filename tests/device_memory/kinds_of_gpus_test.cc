// Drivers and GPUs that are not as a rank expects: too old, taken by another process, a slice of a GPU.
#include <gmock/gmock.h>
#include <unistd.h>

#include "src/core/device_memory/gpu_context.h"
#include "src/core/device_relay/relay.h"
#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DeviceKinds : public DeviceProcesses {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    DeviceProcesses::SetUp();
  }
  // Makes a communicator of two ranks, which fails.
  static std::string why_refused(int rank, setoUniqueId id, setoResult_t expected, unsigned timeout_ms = kLoadingMs) {
    setoConfig_t config = device_config();
    config.initTimeoutMs = timeout_ms;
    setoComm_t comm = nullptr;
    EXPECT_EQ(setoCommInitRankConfig(&comm, 2, id, rank, &config), expected);
    EXPECT_EQ(comm, nullptr);
    return setoGetLastError(nullptr);
  }
};

TEST_F(DeviceKinds, ADriverThatIsTooOldIsRefusedAtInit) {
  if (opened_driver() != nullptr) GTEST_SKIP() << "skipped: a test before this one has opened the driver, which stays open";
  setenv("SOFTWARE_GPU_VERSION", "12080", 1);
  software_gpu::driver::control<void()>("softwareGpuStart")();
  EXPECT_THAT(why_refused(0, {}, setoSystemError),
              AllOf(HasSubstr("memory: device memory cannot be used: the CUDA driver is of CUDA 12.8"),
                    HasSubstr("need CUDA 13.0"), HasSubstr("update the NVIDIA driver to release 580 or later")));
  unsetenv("SOFTWARE_GPU_VERSION");
  setoConfig_t config = device_config();
  config.memory = setoMemoryAuto;
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comm, 1, {}, 0, &config))) << "it goes on with host memory";
  EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

// Both ranks have one GPU. The first process that makes a context has it until it ends.
TEST_F(DeviceKinds, AGpuOfOneProcessIsRefusedToASecond) {
  std::string folder = ::testing::TempDir() + "seto_exclusive_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Variables exclusive{{"SOFTWARE_GPU_COMPUTE_MODE", "exclusive:" + folder}};
  constexpr const char* kAdvice = "nvidia-smi -c DEFAULT as root lets processes share";
  ChildProcess first([&] {
    start_gpus(1, exclusive);
    EXPECT_TRUE(succeeded(setoGetUniqueId(&shared_->id)));
    shared_->has_id.store(1);
    EXPECT_THAT(why_refused(0, shared_->id, setoTimeout, 600), HasSubstr("rank 1 of 2 did not join"));
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (shared_->waiting.load() == 0 && !until.passed()) std::this_thread::yield();
    return true;
  });
  ChildProcess second([&] {
    open(exclusive);
    EXPECT_TRUE(ok(driver().init(0)));
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (shared_->has_id.load() == 0 && !until.passed()) std::this_thread::yield();
    cuda::Context context = nullptr;
    EXPECT_EQ(driver().device_primary_ctx_retain.code(&context, 0), cuda::DriverCode::device_unavailable);
    EXPECT_THAT(why_refused(1, shared_->id, setoInvalidUsage),
                AllOf(HasSubstr("no CUDA context is current"), HasSubstr("GPU 0 may have refused one: its compute mode"),
                      HasSubstr(kAdvice)));
    setenv("SETO_MEMORY", "device", 1);
    setoComm_t comms[2] = {};
    const int devices[] = {0, 0};
    EXPECT_TRUE(failed(setoCommInitAll(comms, 2, devices), setoSystemError, "its compute mode is exclusive"));
    shared_->waiting.store(1);
    return true;
  });
  EXPECT_TRUE(second.wait());
  EXPECT_TRUE(first.wait());
  start_gpus(1, exclusive);  // it succeeds, because the first process has ended
  EXPECT_EQ(unlink((folder + "/gpu0").c_str()), 0);
  EXPECT_EQ(rmdir(folder.c_str()), 0);
}

// Ranks 0 and 2 share a slice, and rank 1 has another one of the same GPU.
TEST_F(DeviceKinds, SlicesOfAGpuAreRelayed) {
  constexpr int kRanks = 3;
  start_gpus(2, {{"SOFTWARE_GPU_MULTI_INSTANCE", "2"}});
  char name[64] = {}, places[2][16] = {};
  int reaches = 1;
  for (int gpu = 0; gpu < 2; ++gpu) {
    ASSERT_TRUE(ok(driver().device_get_name(name, sizeof name, gpu)));
    EXPECT_THAT(name, HasSubstr("MIG"));
    ASSERT_TRUE(ok(driver().device_get_pci_bus_id(places[gpu], sizeof places[gpu], gpu)));
    ASSERT_TRUE(ok(driver().device_can_access_peer(&reaches, gpu, 1 - gpu)));
    EXPECT_EQ(reaches, 0);
  }
  EXPECT_STREQ(places[0], places[1]);
  const std::size_t before = Relay::announcements();
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, static_cast<float>(mine.rank + 1)));
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 6));
    const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(sum(mine, memory))); });
    graph.launch();
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 18));
    EXPECT_GT(Relay::announcements(), before) << "only a host that relays announces captured calls";
  });
}

}  // namespace
}  // namespace seto::testing

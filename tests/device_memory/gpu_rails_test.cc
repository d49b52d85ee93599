// Collectives of GPUs of two hosts, from the C API to the verbs: kernels of the stand-in leave messages in memory of their GPU,
// fake RDMA devices read them there, and a rail that breaks has them copied to the host.
#include <algorithm>
#include <barrier>
#include <utility>

#include "tests/device_memory/relay_hosts.h"
#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"
#include "transports/rdma/verbs/process_verbs.h"

namespace seto::testing {
namespace {

// Each rank sends as many bytes as the call has, whether whole or in halves.
constexpr std::size_t kElements = 12'000;
constexpr std::size_t kSent = 2 * kElements * sizeof(float);
constexpr std::size_t kLeastPart = 16'384;                      // shorter ones stay in memory of the host
constexpr std::size_t kMemoryOfInit = std::size_t{4} << 20;     // of a communicator
constexpr std::size_t kMemoryOfTrial = std::size_t{192} << 10;  // of a process, for each GPU

// The process remembers what a GPU and SETO_RDMA gave, so these tests need a process of their own, as ctest gives it.
class DeviceRails : public DeviceHosts {
 protected:
  // Bytes that devices read in memory of GPUs, and how often the driver copied from one to the host.
  struct Traffic {
    std::size_t read = 0;
    std::uint64_t copies = 0;
  };

  void SetUp() override {
    DeviceHosts::SetUp();
    if (IsSkipped()) return;
    SETO_NEEDS_STAND_IN();
    setenv("SETO_RDMA", "always", 1);
    fabric_.add_ethernet("rail0", "10.0.0.1");
    rdma::replace_verbs_of_process(verbs_.get());
  }
  void TearDown() override {
    DeviceHosts::TearDown();
    rdma::replace_verbs_of_process(nullptr);
    unsetenv("SETO_RDMA");
    unsetenv("SETO_GPUDIRECT");
  }

  [[nodiscard]] Traffic traffic() {
    return {fabric_.bytes_read_of_dma_bufs(),
            software_gpu::driver::control<std::uint64_t(const char*)>("softwareGpuCalls")("cuMemcpyDtoHAsync")};
  }
  // Two ranks repeat a sum until `ends` says of the traffic of one that it is enough. `prepare` comes before each call. All
  // results are checked. Returns whether it was enough in time.
  bool sum_until(const std::function<bool(const Traffic&)>& ends, const std::function<void()>& prepare = {}) {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    Traffic before;
    bool enough = false, over = false;
    std::size_t calls = 0;
    std::barrier begun(2, [&]() noexcept {
      if (prepare) prepare();
      before = traffic();
    });
    std::barrier ended(2, [&]() noexcept {
      const Traffic now = traffic();
      enough = ends({now.read - before.read, now.copies - before.copies});
      ++calls;
      over = enough || until.passed();
    });
    on_site([&](DeviceRank& mine) {
      std::vector<float> input(kElements), expected(kElements);
      for (std::size_t i = 0; i < kElements; ++i) {
        input[i] = static_cast<float>(mine.rank + 1) * static_cast<float>(i % 1000);
        expected[i] = 3 * static_cast<float>(i % 1000);
      }
      const float* const source = mine.upload(input);
      float* const target = mine.upload(std::vector<float>(kElements, -1));
      for (bool last = false; !last;) {
        begun.arrive_and_wait();
        EXPECT_TRUE(succeeded(setoAllReduce(source, target, kElements, setoFloat32, setoSum, mine.comm, mine.stream())));
        mine.synchronize();
        ended.arrive_and_wait();
        last = over;
        EXPECT_EQ(mine.read(target, kElements), expected) << "seed " << seed_ << ", call " << calls;
        mine.write(target, std::vector<float>(kElements, -1));
      }
    });
    return enough;
  }
  // Ranks on two hosts of one site, where rails are used.
  void on_site(const Body& body) const {
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    on_threads(2, [&](DeviceRank& mine) {
      setoConfig_t config = device_config();
      const std::string host = "host " + std::to_string(mine.rank);
      config.hostId = host.c_str();
      config.siteId = "site";
      std::size_t before = 0, after = 0, total = 0;
      EXPECT_TRUE(ok(mine.driver.mem_get_info(&before, &total)));
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, 2, id, mine.rank, &config)));
      EXPECT_TRUE(ok(mine.driver.mem_get_info(&after, &total)));
      EXPECT_LE(before - after, kMemoryOfInit + kMemoryOfTrial) << "before its first call";
      body(mine);
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    });
  }

  const std::uint64_t seed_ = chosen_seed();
  support::FakeFabric fabric_{seed_, support::FakeFabric::Drive::by_thread};
  const std::unique_ptr<rdma::Verbs> verbs_ = fabric_.verbs();
};

// A message for which the peer takes longer than a millisecond is copied, so on a busy machine it takes some calls.
TEST_F(DeviceRails, DevicesReadMessagesInTheGpuAndNothingElseDoes) {
  start_gpus(2);
  EXPECT_TRUE(sum_until([](const Traffic& one) {
    EXPECT_LE(one.read, kSent) << "each byte is read once";
    return one.read == kSent && one.copies == 0;
  }));
}

// A rail that carries all messages breaks in a call. What the peer had not acknowledged is copied to the host, each part once,
// and comes over the socket.
TEST_F(DeviceRails, MessagesOfABrokenRailComeFromTheHost) {
  start_gpus(2);
  bool is_whole = false;
  std::uint64_t breaks = 0;
  EXPECT_TRUE(sum_until(
      [&](const Traffic& one) {
        EXPECT_LE(one.copies, kSent / kLeastPart);
        const bool was_whole = std::exchange(is_whole, one.read == kSent);
        return was_whole && one.read < kSent && one.copies > 0;
      },
      [&] {
        if (is_whole) fabric_.fail_completion(rdma::CompletionStatus::retry_exceeded, breaks++ % 4);
      }));
}

TEST_F(DeviceRails, NothingIsReadThereWithoutGpuDirect) {
  setenv("SETO_GPUDIRECT", "off", 1);
  start_gpus(2);
  const std::size_t before = fabric_.bytes_read_of_dma_bufs();
  std::size_t calls = 0;
  EXPECT_TRUE(sum_until([&](const Traffic& one) {
    EXPECT_EQ(one.read, 0U);
    EXPECT_EQ(one.copies, 0U);
    return fabric_.paths().size() >= 2 && ++calls == 5;
  })) << "no rail was opened";
  EXPECT_GT(fabric_.bytes_read_of_dma_bufs(), before) << "the trial has not shown that the device could";
}

}  // namespace
}  // namespace seto::testing

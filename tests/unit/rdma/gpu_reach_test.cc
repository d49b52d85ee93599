#include "transports/rdma/gpu_memory/gpu_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "tests/support/fake_verbs.h"
#include "tests/support/memfd_gpu.h"
#include "tests/support/seed.h"

// The choice of a way to memory of a GPU, and the trial that proves it.
namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kPatienceMs = 120'000;  // ends only a test that fails

class GpuReaches : public ::testing::Test {
 protected:
  GpuReaches() { fabric->add_ethernet("mlx5_0", "10.0.0.1"); }
  ~GpuReaches() override { std::filesystem::remove_all(modules); }

  void load_peermem() {
    std::filesystem::create_directories(modules / "nvidia_peermem");
    gpu.map_addresses();
  }
  GpuReach find(std::uint64_t patience_ms = kPatienceMs) {
    const std::unique_ptr<Verbs> verbs = fabric->verbs();
    GpuReach reach = find_gpu_reach(*verbs, "mlx5_0", gpu, Deadline::after_ms(patience_ms), modules.string());
    EXPECT_EQ(fabric->registered_bytes(), 0U) << "something is still registered";
    EXPECT_TRUE(fabric->paths().empty()) << "a queue pair is left";
    return reach;
  }
  static Status refusal(const char* text) { return failure(Code::unavailable, "%s", text); }

  // Devices that nothing has broken yet.
  void renew_fabric() { fabric = std::make_unique<FakeFabric>(seed, FakeFabric::Drive::by_thread); }

  const std::uint64_t seed = testing::chosen_seed();
  std::unique_ptr<FakeFabric> fabric = std::make_unique<FakeFabric>(seed, FakeFabric::Drive::by_thread);
  const std::filesystem::path modules = std::filesystem::temp_directory_path() / ("seto_modules_" + std::to_string(getpid()));
  support::MemfdGpu gpu;
};

TEST_F(GpuReaches, ByDmaBufInBothDirections) {
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_TRUE(reach.writes);
  EXPECT_EQ(reach.why_less, "");
  EXPECT_EQ(reach.device, "mlx5_0");
}

TEST_F(GpuReaches, OverInfiniband) {
  renew_fabric();
  fabric->add_infiniband("mlx5_0", 7);
  EXPECT_EQ(find().way, GpuWay::dma_buf);
}

TEST_F(GpuReaches, ByPeermemWhereTheDriverOffersNoDmaBuf) {
  load_peermem();
  gpu.on_dma_buf = [] { return refusal("an old driver"); };
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::peermem);
  EXPECT_TRUE(reach.writes);
  EXPECT_EQ(reach.why_less, "dma-buf: an old driver");
}

TEST_F(GpuReaches, ByPeermemWhereTheDeviceRefusesADmaBuf) {
  load_peermem();
  fabric->fail(VerbsCall::register_dma_buf, EOPNOTSUPP);
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::peermem);
  EXPECT_THAT(reach.why_less, AllOf(StartsWith("dma-buf: ibv_reg_dmabuf_mr of mlx5_0"), HasSubstr("takes no dma-buf")));
}

TEST_F(GpuReaches, NotAtAllWithBothReasons) {
  fabric->fail(VerbsCall::register_dma_buf, EINVAL);
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::bounce);
  EXPECT_FALSE(reach.writes);
  EXPECT_THAT(reach.why_less,
              AllOf(HasSubstr("ibv_reg_dmabuf_mr"), HasSubstr("; peermem: the module nvidia_peermem is not loaded")));
}

TEST_F(GpuReaches, NotWherePeermemRefusesItsAddresses) {
  load_peermem();
  fabric->fail(VerbsCall::register_dma_buf, EINVAL);
  fabric->fail(VerbsCall::register_memory, EFAULT, 8);  // after two rings of four ends
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::bounce);
  EXPECT_THAT(reach.why_less, HasSubstr("peermem: ibv_reg_mr of mlx5_0 failed"));
}

TEST_F(GpuReaches, NotByAWayThatReadsOtherBytes) {
  load_peermem();
  fabric->garble_reads_of_dma_bufs();
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::peermem);
  EXPECT_THAT(reach.why_less, HasSubstr("dma-buf: the device read other bytes than the GPU has"));
}

TEST_F(GpuReaches, NotWhereARequestFails) {
  load_peermem();
  fabric->fail_completion(CompletionStatus::local_protection_error, 2);  // after a first message from either end
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::peermem);
  EXPECT_THAT(reach.why_less, StartsWith("dma-buf: "));
}

TEST_F(GpuReaches, WritesAreThereAfterTheFlush) {
  fabric->hold_writes_to_dma_bufs();
  gpu.on_flush = [this] {
    fabric->show_held_writes();
    return Status();
  };
  EXPECT_TRUE(find().writes);
}

TEST_F(GpuReaches, OnlyForReadingWhereTheFlushDoesNothing) {
  fabric->hold_writes_to_dma_bufs();
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_FALSE(reach.writes);
  EXPECT_THAT(reach.why_less, HasSubstr("it only reads: the GPU reads other bytes than the device wrote"));
}

TEST_F(GpuReaches, OnlyForReadingWhereTheFlushFails) {
  gpu.on_flush = [] { return refusal("no flush"); };
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_FALSE(reach.writes);
  EXPECT_EQ(reach.why_less, "dma-buf: it only reads: no flush");
}

TEST_F(GpuReaches, NotThroughAPortThatIsDown) {
  fabric->set_port("mlx5_0", 1, PortState::down);
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::bounce);
  EXPECT_THAT(reach.why_less, HasSubstr("dma-buf: "));
}

TEST_F(GpuReaches, NotWhereCopiesOfTheDriverFail) {
  load_peermem();
  gpu.on_write = [] { return refusal("no copy"); };
  EXPECT_EQ(find().why_less, "dma-buf: no copy; peermem: no copy");
  gpu.on_write = [] { return Status(); };
  gpu.on_read = [] { return refusal("no copy back"); };
  const GpuReach reach = find();
  EXPECT_EQ(reach.way, GpuWay::dma_buf);
  EXPECT_EQ(reach.why_less, "dma-buf: it only reads: no copy back");
}

// A call fails, whichever it is: the answer is a better way or a reason, and nothing stays registered.
TEST_F(GpuReaches, EachFailureLeavesAReason) {
  load_peermem();
  constexpr std::uint64_t kShortMs = 1'000;  // a trial that cannot end any more waits so long
  for (const VerbsCall call :
       {VerbsCall::open_device, VerbsCall::query_device, VerbsCall::register_memory, VerbsCall::register_dma_buf,
        VerbsCall::create_completion_queue, VerbsCall::create_queue_pair, VerbsCall::prepare, VerbsCall::ready_to_receive,
        VerbsCall::ready_to_send, VerbsCall::post_send, VerbsCall::post_receive, VerbsCall::poll})
    for (const std::uint64_t after : {0, 1, 4}) {
      renew_fabric();
      fabric->add_ethernet("mlx5_0", "10.0.0.1");
      fabric->fail(call, EIO, after);
      const GpuReach reach = find(kShortMs);
      EXPECT_TRUE((reach.way == GpuWay::dma_buf && reach.writes) || !reach.why_less.empty())
          << name_of(call) << " after " << after << ": " << name_of(reach.way);
    }
}

TEST(GpuReach, OfThisMachineIsEmptyWhereRdmaIsOff) {
  support::MemfdGpu gpu;
  EXPECT_TRUE(find_gpu_reach("off", gpu, Deadline::after_ms(kPatienceMs)).empty());
  EXPECT_TRUE(find_gpu_reach("OFF", gpu, Deadline::after_ms(kPatienceMs)).empty());
}

}  // namespace
}  // namespace seto::rdma

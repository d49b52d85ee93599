#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "transports/rdma/link/registered_memory.h"
#include "transports/rdma/verbs/libibverbs_device.h"

// Which memory a device may write in any order, as the calls of the library say; recorded by functions in its place.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

constexpr unsigned kInOrder = abi::kAccessLocalWrite | abi::kAccessRemoteWrite;

struct Registration {
  const void* memory = nullptr;
  std::uint64_t address = 0;
  unsigned access = 0;
};
std::vector<Registration> all;
abi::Region region;
int refusal = 0;  // of memory in any order; 0: none

LibibverbsFunctions functions() {
  static char domain = 0;
  LibibverbsFunctions calls;
  calls.ibv_alloc_pd = [](abi::Context*) { return reinterpret_cast<abi::Domain*>(&domain); };
  calls.ibv_dealloc_pd = [](abi::Domain*) { return 0; };
  calls.ibv_close_device = [](abi::Context*) { return 0; };
  calls.ibv_dereg_mr = [](abi::Region*) { return 0; };
  calls.ibv_reg_mr = [](abi::Domain*, void* memory, std::size_t, int access) {
    all.push_back({memory, reinterpret_cast<std::uint64_t>(memory), static_cast<unsigned>(access)});
    return &region;
  };
  calls.ibv_reg_mr_iova2 = [](abi::Domain*, void* memory, std::size_t, std::uint64_t address, unsigned access) -> abi::Region* {
    all.push_back({memory, address, access});
    errno = refusal;
    return refusal == 0 ? &region : nullptr;
  };
  return calls;
}

class MemoryOrder : public ::testing::Test {
 protected:
  MemoryOrder() {
    all.clear();
    refusal = 0;
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    context_.event_descriptor = pipe_[0];
    open();
  }
  ~MemoryOrder() override {
    device_.reset();
    for (const int end : pipe_) close(end);
  }

  void open() { device_ = LibibverbsDevice::create(functions(), &context_, "mlx5_0").value(); }

  std::unique_ptr<VerbsDevice> device_;

 private:
  std::array<int, 2> pipe_{};
  abi::Context context_{};
};

TEST_F(MemoryOrder, OfRingsIsFree) {
  const auto ring = RegisteredMemory::create(*device_, 64 << 10).value();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].access, kInOrder | abi::kAccessRelaxedOrdering);
  EXPECT_EQ(all[0].memory, ring->data());
  EXPECT_EQ(all[0].address, reinterpret_cast<std::uint64_t>(ring->data()));
}

TEST_F(MemoryOrder, OfOtherMemoryIsKept) {
  std::array<std::byte, 64> memory{};
  ASSERT_TRUE(device_->register_memory(memory.data(), memory.size()).ok());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].access, kInOrder);
}

// It is asked once.
TEST_F(MemoryOrder, IsKeptWhereTheDriverKnowsNoOther) {
  for (const int error : {EOPNOTSUPP, EINVAL}) {
    all.clear();
    open();
    refusal = error;
    for (int times = 0; times < 2; ++times) {
      EXPECT_TRUE(RegisteredMemory::create(*device_, 64 << 10).ok());
      EXPECT_EQ(all.back().access, kInOrder);
    }
    EXPECT_EQ(all.size(), 3U);
  }
}

TEST_F(MemoryOrder, ALimitOfLockedMemoryIsNoQuestionOfOrder) {
  refusal = ENOMEM;
  const auto ring = RegisteredMemory::create(*device_, 64 << 10);
  ASSERT_FALSE(ring.ok());
  EXPECT_THAT(std::string(ring.status().text()), HasSubstr("ulimit -l unlimited"));
  EXPECT_EQ(all.size(), 1U);
}

}  // namespace
}  // namespace seto::rdma

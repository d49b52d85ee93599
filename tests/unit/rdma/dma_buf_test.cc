#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "transports/rdma/verbs/libibverbs_device.h"

// How libibverbs is asked to register a dma-buf.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

struct Registration {
  std::uint64_t offset = 0, address = 0;
  std::size_t size = 0;
  int descriptor = -1, access = 0;
};
Registration last;
abi::Region region;
int ended = 0;

LibibverbsFunctions functions() {
  static char domain = 0;
  LibibverbsFunctions all;
  all.ibv_alloc_pd = [](abi::Context*) { return reinterpret_cast<abi::Domain*>(&domain); };
  all.ibv_dealloc_pd = [](abi::Domain*) { return 0; };
  all.ibv_close_device = [](abi::Context*) { return 0; };
  all.ibv_dereg_mr = [](abi::Region*) { return ++ended, 0; };
  return all;
}

class DmaBufs : public ::testing::Test {
 protected:
  DmaBufs() {
    last = {};
    ended = 0;
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    context_.event_descriptor = pipe_[0];
  }
  ~DmaBufs() override {
    for (const int end : pipe_) close(end);
  }
  std::unique_ptr<VerbsDevice> device(const LibibverbsFunctions& all) {
    return LibibverbsDevice::create(all, &context_, "mlx5_0").value();
  }

 private:
  std::array<int, 2> pipe_{};
  abi::Context context_{};
};

TEST_F(DmaBufs, AreRegisteredByTheirDescriptor) {
  LibibverbsFunctions all = functions();
  all.ibv_reg_dmabuf_mr = [](abi::Domain*, std::uint64_t offset, std::size_t size, std::uint64_t address, int descriptor,
                             int access) {
    last = {offset, address, size, descriptor, access};
    region.local_key = 5;
    region.remote_key = 6;
    return &region;
  };
  const auto opened = device(all);
  auto registered = opened->register_dma_buf({7, 4'096, 0x7f00'0000'1000, 65'536});
  ASSERT_TRUE(registered.ok()) << registered.status().text();
  EXPECT_EQ(last.descriptor, 7);
  EXPECT_EQ(last.offset, 4'096U);
  EXPECT_EQ(last.address, 0x7f00'0000'1000U);
  EXPECT_EQ(last.size, 65'536U);
  EXPECT_EQ(last.access, abi::kAccessLocalWrite | abi::kAccessRemoteWrite);
  EXPECT_EQ(registered.value()->local_key(), 5U);
  EXPECT_EQ(registered.value()->remote_key(), 6U);
  registered.value().reset();
  EXPECT_EQ(ended, 1);
}

TEST_F(DmaBufs, NeedALaterLibrary) {
  const auto opened = device(functions());
  const auto refused = opened->register_dma_buf({7, 0, 0x1000, 65'536});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("install rdma-core 34 or later"));
}

TEST_F(DmaBufs, AreRefusedWithAdvice) {
  LibibverbsFunctions all = functions();
  all.ibv_reg_dmabuf_mr = [](abi::Domain*, std::uint64_t, std::size_t, std::uint64_t, int, int) -> abi::Region* {
    errno = EOPNOTSUPP;
    return nullptr;
  };
  const auto opened = device(all);
  const auto refused = opened->register_dma_buf({7, 0, 0x1000, 65'536});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("ibv_reg_dmabuf_mr of mlx5_0 failed"));
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("takes no dma-buf"));
}

}  // namespace
}  // namespace seto::rdma

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "transports/rdma/verbs/libibverbs_queues.h"

// The calls of the library, recorded by functions in its place.
namespace seto::rdma {
namespace {

struct Modification {
  abi::PairAttributes attributes;
  int mask = 0;
};
std::vector<Modification>& modifications() {
  static std::vector<Modification> all;
  return all;
}

LibibverbsFunctions functions() {
  static char domain = 0;  // its layout is the library's
  LibibverbsFunctions all;
  all.ibv_alloc_pd = [](abi::Context*) { return reinterpret_cast<abi::Domain*>(&domain); };
  all.ibv_dealloc_pd = [](abi::Domain*) { return 0; };
  all.ibv_close_device = [](abi::Context*) { return 0; };
  all.ibv_destroy_qp = [](abi::Pair*) { return 0; };
  all.ibv_modify_qp = [](abi::Pair*, abi::PairAttributes* attributes, int mask) {
    modifications().push_back({*attributes, mask});
    return 0;
  };
  return all;
}

class LibibverbsPairs : public ::testing::Test {
 protected:
  LibibverbsPairs() {
    modifications().clear();
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    context_.event_descriptor = pipe_[0];
    device_ = LibibverbsDevice::create(functions(), &context_, "mlx5_0").value();
    pair_ = std::make_unique<LibibverbsPair>(static_cast<LibibverbsDevice&>(*device_), &handle_, 0);
  }
  ~LibibverbsPairs() override {
    pair_.reset();
    device_.reset();
    for (const int end : pipe_) close(end);
  }

  std::array<int, 2> pipe_{};
  abi::Context context_{};
  abi::Pair handle_{};
  std::unique_ptr<VerbsDevice> device_;
  std::unique_ptr<LibibverbsPair> pair_;
};

TEST_F(LibibverbsPairs, AreModifiedAsThePathSays) {
  QueuePairPath path;
  path.gid_index = 3;
  path.traffic_class = 106;
  path.service_level = 5;
  path.timeout = 18;
  path.retry_count = 4;
  path.mtu = 4'096;
  path.flow_label = 0x54321;
  path.hop_limit = 3;
  path.static_rate = 7;
  path.source_path_bits = 2;
  ASSERT_TRUE(pair_->connect(path).ok());
  ASSERT_EQ(modifications().size(), 2U);
  const Modification& receive = modifications()[0];
  EXPECT_EQ(receive.attributes.state, abi::kReadyToReceive);
  EXPECT_NE(receive.mask & abi::kSetPath, 0);
  EXPECT_EQ(receive.attributes.path.service_level, 5);
  EXPECT_EQ(receive.attributes.path.is_global, 1);
  EXPECT_EQ(receive.attributes.path.traffic_class, 106);
  EXPECT_EQ(receive.attributes.path.flow_label, 0x54321U);
  EXPECT_EQ(receive.attributes.path.hop_limit, 3);
  EXPECT_EQ(receive.attributes.path.static_rate, 7);
  EXPECT_EQ(receive.attributes.path.path_bits, 2);
  EXPECT_EQ(receive.attributes.mtu, 5U) << "the code of 4096 bytes";
  const Modification& send = modifications()[1];
  EXPECT_EQ(send.attributes.state, abi::kReadyToSend);
  EXPECT_NE(send.mask & abi::kSetTimeout, 0);
  EXPECT_NE(send.mask & abi::kSetRetries, 0);
  EXPECT_EQ(send.attributes.timeout, 18);
  EXPECT_EQ(send.attributes.retry_count, 4);
}

// A traffic class is a field of the global route.
TEST_F(LibibverbsPairs, HaveNoTrafficClassWithoutAGlobalRoute) {
  QueuePairPath path;
  path.traffic_class = 106;
  path.service_level = 5;
  ASSERT_TRUE(pair_->connect(path).ok());
  EXPECT_EQ(modifications().at(0).attributes.path.is_global, 0);
  EXPECT_EQ(modifications().at(0).attributes.path.service_level, 5);
}

}  // namespace
}  // namespace seto::rdma

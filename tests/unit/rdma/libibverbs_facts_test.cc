#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "transports/rdma/verbs/libibverbs_device.h"

// Facts of a device as the library says them, by functions in its place.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

abi::PortAttributes port;
std::array<int, 4> gid_errors{};  // by index

LibibverbsFunctions functions() {
  static char domain = 0;
  LibibverbsFunctions all;
  all.ibv_alloc_pd = [](abi::Context*) { return reinterpret_cast<abi::Domain*>(&domain); };
  all.ibv_dealloc_pd = [](abi::Domain*) { return 0; };
  all.ibv_close_device = [](abi::Context*) { return 0; };
  all.ibv_query_device = [](abi::Context*, abi::DeviceAttributes* attributes) {
    attributes->most_completions = 4'194'303;
    reinterpret_cast<std::uint8_t*>(attributes)[abi::kPortCountAt] = 1;
    return 0;
  };
  all.ibv_query_port = [](abi::Context*, std::uint8_t, abi::PortAttributes* attributes) { return *attributes = port, 0; };
  all._ibv_query_gid_ex = [](abi::Context*, std::uint32_t, std::uint32_t index, abi::GidEntry* entry, std::uint32_t,
                             std::size_t) {
    entry->index = index;
    entry->type = 2;
    entry->gid.bytes[0] = 0x20;
    entry->gid.bytes[15] = static_cast<std::uint8_t>(index + 1);
    return gid_errors.at(index);
  };
  all.ibv_query_pkey = [](abi::Context*, std::uint8_t, int, std::uint16_t* key) { return *key = 0xffff, 0; };
  return all;
}

class LibibverbsFacts : public ::testing::Test {
 protected:
  LibibverbsFacts() {
    gid_errors = {};
    port = {};
    port.state = 4;
    port.active_mtu = 5;
    port.gid_count = 4;
    port.pkey_count = 1;
    port.lid = 7;
    port.active_width = 2;
    port.active_speed = 128;
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    context_.event_descriptor = pipe_[0];
    device_ = LibibverbsDevice::create(functions(), &context_, "mlx5_0").value();
  }
  ~LibibverbsFacts() override {
    device_.reset();
    for (const int end : pipe_) close(end);
  }
  std::vector<std::uint32_t> gids() {
    const DeviceFacts facts = device_->facts().value();
    std::vector<std::uint32_t> indices;
    for (const GidEntry& one : facts.ports.at(0).gids) indices.push_back(one.index);
    return indices;
  }

  std::unique_ptr<VerbsDevice> device_;

 private:
  std::array<int, 2> pipe_{};
  abi::Context context_{};
};

TEST_F(LibibverbsFacts, AreThoseOfThePort) {
  const DeviceFacts facts = device_->facts().value();
  EXPECT_EQ(facts.most_completions, 4'194'303U);
  const PortFacts& one = facts.ports.at(0);
  EXPECT_EQ(one.state, PortState::active);
  EXPECT_EQ(one.mtu, 4'096U);
  EXPECT_EQ(one.lid, 7);
  EXPECT_EQ(one.rate_mbit, 400'000U) << "four lanes of NDR";
  EXPECT_EQ(one.pkeys, std::vector<std::uint16_t>{0xffff});
}

// A table of the host in a container: entries that are empty, or of interfaces that are not there, are no failure of the device.
TEST_F(LibibverbsFacts, LeaveOutGidsThatCannotBeUsed) {
  gid_errors = {ENODATA, 0, ENODEV, 0};
  EXPECT_EQ(gids(), (std::vector<std::uint32_t>{1, 3}));
  gid_errors = {0, EIO, 0, 0};
  const auto facts = device_->facts();
  ASSERT_FALSE(facts.ok());
  EXPECT_THAT(std::string(facts.status().text()), HasSubstr("ibv_query_gid_ex of mlx5_0 failed"));
}

// Only InfiniBand has LIDs that ports may share.
TEST_F(LibibverbsFacts, SayWhetherPacketsNeedAGlobalRoute) {
  using Byte = std::uint8_t;
  for (const Byte layer : {Byte{1}, Byte{2}})
    for (const Byte flags : {Byte{0}, Byte{1}, Byte{2}}) {
      port.link_layer = layer;
      port.flags = flags;
      EXPECT_EQ(device_->facts().value().ports.at(0).needs_global_route, layer == 1 && flags == 1);
    }
}

}  // namespace
}  // namespace seto::rdma

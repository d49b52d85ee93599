#include "transports/rdma/connect/port_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class PortReports : public ::testing::Test {
 protected:
  std::vector<PortReport> report() { return report_ports(*fabric.verbs()).value(); }

  FakeFabric fabric{testing::chosen_seed()};
};

TEST_F(PortReports, SayWhichGidAndWhy) {
  fabric.add_ethernet("mlx5_0", "10.0.0.1", 1'024);
  const auto all = report();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].name, "mlx5_0 port 1");
  EXPECT_EQ(all[0].value, "up");
  EXPECT_THAT(all[0].remark, StartsWith("Ethernet, GID "));
  EXPECT_THAT(all[0].remark, HasSubstr("(10.0.0.1), MTU 1024"));
  EXPECT_THAT(all[0].remark, HasSubstr(": RoCE v2"));
  EXPECT_EQ(all[0].device, "mlx5_0");
  EXPECT_EQ(all[0].port, 1);
  EXPECT_EQ(all[0].link_layer, "Ethernet");
  EXPECT_EQ(all[0].gid, "10.0.0.1");
  EXPECT_TRUE(all[0].gid_index.has_value());
  EXPECT_EQ(all[0].mtu, 1'024U);
  EXPECT_THAT(all[0].why, StartsWith("RoCE v2"));
}

TEST_F(PortReports, OfInfinibandSayTheLid) {
  fabric.add_infiniband("mlx5_1", 7);
  EXPECT_THAT(report().at(0).remark, StartsWith("InfiniBand, LID 7, MTU "));
}

TEST_F(PortReports, SayWhyAPortIsNotUsed) {
  fabric.add_ethernet("mlx5_0", "10.0.0.1");
  fabric.set_port("mlx5_0", 1, PortState::down);
  EXPECT_EQ(report().at(0).value, "down");
  EXPECT_EQ(report().at(0).remark, "Ethernet");
  DeviceFacts bare;
  bare.name = "mlx5_1";
  PortFacts port;
  port.number = 1;
  port.state = PortState::active;
  port.link_layer = LinkLayer::ethernet;
  port.pkeys = {0xffff};
  bare.ports = {port};
  fabric.add(bare);
  EXPECT_EQ(report().at(1).value, "cannot be used");
  EXPECT_THAT(report().at(1).remark, HasSubstr("has no GID: its network interface has no address"));
}

TEST_F(PortReports, NameADeviceThatCannotBeOpened) {
  fabric.add_ethernet("mlx5_0", "10.0.0.1");
  fabric.fail(VerbsCall::open_device, EACCES);
  const auto all = report();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].value, "cannot be opened");
  EXPECT_THAT(all[0].remark, HasSubstr("mlx5_0"));
}

TEST_F(PortReports, NameADeviceThatDoesNotAnswer) {
  fabric.add_ethernet("mlx5_0", "10.0.0.1");
  fabric.fail(VerbsCall::query_port, EIO);
  const auto all = report();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].remark, HasSubstr("ibv_query_port of mlx5_0 failed"));
}

TEST(PortReport, OfThisMachineNeverFailsWithoutDevices) {
  const auto all = report_ports();
  if (all.ok()) return;
  EXPECT_THAT(std::string(all.status().text()), HasSubstr("libibverbs")) << "there are devices, and no library";
}

}  // namespace
}  // namespace seto::rdma

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/log.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using support::PipePair;
using support::RdmaHost;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The MTUs of the paths that these settings of two hosts lead to, whose ports have 4096 and `of_port`.
std::vector<std::uint32_t> mtus_with(const char* here, const char* there, std::uint32_t of_port = 4'096) {
  FakeFabric fabric(testing::chosen_seed());
  fabric.add_ethernet("a0", "10.0.0.1");
  fabric.add_ethernet("b0", "10.0.0.2", of_port);
  const auto terms_of = [](const char* setting) {
    const char* const settings[] = {setting, nullptr};
    return PipeTerms{.most_mtu = most_mtu_in(load_config(settings).value())};
  };
  RdmaHost one(fabric, {"a0"}, terms_of(here));
  RdmaHost other(fabric, {"b0"}, terms_of(there));
  const PipePair pipes = support::connect_pipes(one.pipes(), other.pipes(), [&] { fabric.run(); });
  EXPECT_NE(pipes.first, nullptr);
  std::vector<std::uint32_t> mtus;
  for (const QueuePairPath& path : fabric.paths()) mtus.push_back(path.mtu);
  return mtus;
}

TEST(RdmaSetting, LimitsTheMtuOfBothEnds) {
  EXPECT_THAT(mtus_with(nullptr, nullptr), ElementsAre(4'096, 4'096));
  EXPECT_THAT(mtus_with("SETO_RDMA_MTU=auto", nullptr, 1'024), ElementsAre(1'024, 1'024)) << "the smaller one of both ports";
  EXPECT_THAT(mtus_with("SETO_RDMA_MTU=1024", nullptr), ElementsAre(1'024, 1'024));
  EXPECT_THAT(mtus_with(nullptr, "SETO_RDMA_MTU=256"), ElementsAre(256, 256));
  EXPECT_THAT(mtus_with("SETO_RDMA_MTU=512", "SETO_RDMA_MTU=2048"), ElementsAre(512, 512));
}

TEST(RdmaSetting, AMtuBeyondThatOfThePortSaysWhatToDo) {
  const LogCapture log;
  EXPECT_THAT(mtus_with("SETO_RDMA_MTU=1024", "SETO_RDMA_MTU=1024", 1'024), ::testing::Each(1'024));
  EXPECT_FALSE(log.contains("active MTU"));
  EXPECT_THAT(mtus_with("SETO_RDMA_MTU=2048", "SETO_RDMA_MTU=2048", 1'024), ::testing::Each(1'024));
  EXPECT_TRUE(
      log.contains("SETO_RDMA_MTU=2048: the active MTU of port 1 of b0 is 1024, which is used: raise that of its "
                   "interface (ip link set dev NAME mtu 2152"));
  EXPECT_TRUE(log.contains("or set SETO_RDMA_MTU=1024"));
  EXPECT_FALSE(log.contains("of a0 is"));
}

TEST(RdmaSetting, AMtuThatNoPortHasIsRefusedWithTheOthers) {
  for (const char* const wrong : {"SETO_RDMA_MTU=1500", "SETO_RDMA_MTU=0", "SETO_RDMA_MTU=8192", "SETO_RDMA_MTU=4K"}) {
    const char* const settings[] = {wrong, nullptr};
    const auto read = load_config(settings);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_THAT(std::string(read.status().text()), HasSubstr("auto, 256, 512, 1024, 2048, 4096"));
  }
}

}  // namespace
}  // namespace seto::rdma

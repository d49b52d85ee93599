#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "src/base/config.h"
#include "src/base/log.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using support::PipePair;
using support::RdmaHost;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RingPipes : public ::testing::Test {
 protected:
  RingPipes() {
    fabric.add_ethernet("a0", "10.0.0.1");
    fabric.add_ethernet("b0", "10.0.0.2");
    fabric.add_ethernet("a1", "10.1.0.1");
    fabric.add_ethernet("b1", "10.1.0.2");
    here = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"a0", "a1"});
    there = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"b0", "b1"});
  }
  PipePair connect(std::vector<const BytePipe*> beside = {}) {
    return support::connect_pipes(
        here->pipes(), there->pipes(), [this] { fabric.run(); }, std::move(beside));
  }
  void move() {
    fabric.run();
    here->pipes().poll();
    there->pipes().poll();
  }
  // Sends as much as there is room for, in parts of random sizes.
  std::size_t send_some(BytePipe& pipe, std::string_view bytes) {
    std::array<iovec, 6> parts{};
    std::size_t count = 0;
    std::size_t at = 0;
    while (count < parts.size() && at < bytes.size()) {
      const std::size_t size = std::min<std::size_t>(1 + random() % (random() % 2 == 0 ? 100 : 80'000), bytes.size() - at);
      parts[count++] = {const_cast<char*>(bytes.data()) + at, size};
      at += size;
    }
    const ssize_t sent = pipe.send({parts.data(), count});
    EXPECT_TRUE(sent >= 0 || errno == EAGAIN);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  std::string receive_some(BytePipe& pipe) {
    std::string first(1 + random() % 1'000, '\0');
    std::string second(1 + random() % 50'000, '\0');
    const iovec parts[2] = {{first.data(), first.size()}, {second.data(), second.size()}};
    const ssize_t got = pipe.receive(parts);
    if (got < 0) {
      EXPECT_EQ(errno, EAGAIN);
      return {};
    }
    return (first + second).substr(0, static_cast<std::size_t>(got));
  }

  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random{seed};
  FakeFabric fabric{seed};
  std::unique_ptr<RdmaHost> here, there;
};

// This end closes it; what the peer had sent before may be the last that comes of it.
TEST_F(RingPipes, WhatHasArrivedIsReadAfterTheEnd) {
  auto [one, other] = connect();
  ASSERT_TRUE(one != nullptr && other != nullptr);
  std::string bytes = "the last words";
  const iovec part{bytes.data(), bytes.size()};
  ASSERT_EQ(one->send({&part, 1}), static_cast<ssize_t>(bytes.size()));
  fabric.run();
  other->close();
  std::string got(bytes.size(), '\0');
  const iovec room{got.data(), got.size()};
  ASSERT_EQ(other->receive({&room, 1}), static_cast<ssize_t>(got.size()));
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(other->receive({&room, 1}), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(RingPipes, CarryBytesInOrderBothWays) {
  auto [one, other] = connect();
  ASSERT_TRUE(one != nullptr && other != nullptr);
  std::string sent[2];
  for (std::string& bytes : sent) {
    bytes.resize(3'000'000);
    for (char& each : bytes) each = static_cast<char>(random());
  }
  BytePipe* const ends[2] = {one.get(), other.get()};
  std::size_t done[2] = {};
  std::string got[2];
  for (int turns = 0; turns < 1'000'000 && (got[0].size() < sent[0].size() || got[1].size() < sent[1].size()); ++turns) {
    const std::size_t end = random() % 2;
    if (random() % 2 == 0)
      done[end] += send_some(*ends[end], std::string_view(sent[end]).substr(done[end]));
    else
      got[end] += receive_some(*ends[1 - end]);
    if (random() % 4 == 0) move();
  }
  EXPECT_TRUE(got[0] == sent[0] && got[1] == sent[1]);
  for (int turns = 0; turns < 100 && !(one->delivered() && other->delivered()); ++turns) move();
  EXPECT_TRUE(one->delivered() && other->delivered());
}

TEST_F(RingPipes, SayTheirWay) {
  auto [one, other] = connect();
  EXPECT_EQ(one->way(), "RDMA a0 port 1, 10.0.0.1 -> 10.0.0.2");
  EXPECT_EQ(other->way(), "RDMA b0 port 1, 10.0.0.2 -> 10.0.0.1");
}

TEST_F(RingPipes, TakeOtherPortsBesideOthers) {
  EXPECT_EQ(here->pipes().rails(), 2U);
  const PipePair first = connect();
  const PipePair second = connect({first.first.get()});
  EXPECT_EQ(second.first->way(), "RDMA a1 port 1, 10.1.0.1 -> 10.1.0.2");
  const PipePair third = connect({first.first.get(), second.first.get()});
  EXPECT_EQ(third.first, nullptr);
  EXPECT_EQ(third.second, nullptr);
}

TEST_F(RingPipes, ReadWhatCameBeforeTheBreak) {
  auto [one, other] = connect();
  EXPECT_EQ(send_some(*one, "hello"), 5U);
  move();
  fabric.set_port("b0", 1, PortState::down);
  there->pipes().arm();  // takes the event
  char bytes[16];
  const iovec part{bytes, sizeof bytes};
  ASSERT_EQ(other->receive({&part, 1}), 5);
  EXPECT_EQ(other->receive({&part, 1}), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_THAT(other->why(), HasSubstr("b0"));
  EXPECT_EQ(other->send({&part, 1}), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

// Once for all of its pipes, and not again when it comes and goes.
TEST_F(RingPipes, ALostPortIsSaidOnce) {
  const LogCapture log;
  const auto lines = [&] {
    const auto all = log.lines();
    return std::count_if(all.begin(), all.end(), [](const std::string& line) { return line.find("go over other") != line.npos; });
  };
  fabric.set_port("b0", 1, PortState::down);
  there->pipes().arm();
  EXPECT_EQ(lines(), 0) << "nothing went over it";
  fabric.set_port("b0", 1, PortState::active);
  for (int times = 0; times < 2; ++times) {
    const PipePair first = connect();
    const PipePair second = connect();
    fabric.set_port("b0", 1, PortState::down);
    there->pipes().arm();
    fabric.set_port("b0", 1, PortState::active);
    there->pipes().arm();
    EXPECT_EQ(lines(), 1);
  }
  EXPECT_TRUE(log.contains("RDMA device b0: port 1 is down: 2 connections go over other ports or TCP until it is up again"));
}

TEST_F(RingPipes, BreakWithTheirDevice) {
  auto [one, other] = connect();
  auto [beside, beside_other] = connect({one.get()});
  fabric.remove("a0");
  here->pipes().arm();
  char bytes[16];
  const iovec part{bytes, sizeof bytes};
  EXPECT_EQ(one->receive({&part, 1}), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(beside->receive({&part, 1}), -1);
  EXPECT_EQ(errno, EAGAIN) << "the other device works";
}

// The look at the ports comes while the pipe on the farther one is not there yet.
TEST_F(RingPipes, OnAFarPortBreakWhenANearOneCameUpDuringTheirSetUp) {
  fabric.set_distance("a1", 21);
  here = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"a0", "a1"});
  fabric.set_port("a0", 1, rdma::PortState::down);
  here->pipes().arm();
  bool is_down = true;
  auto [one, other] = support::connect_pipes(here->pipes(), there->pipes(), [&] {
    if (std::exchange(is_down, false)) fabric.set_port("a0", 1, rdma::PortState::active);
    here->pipes().arm();
    fabric.run();
  });
  ASSERT_NE(one, nullptr);
  EXPECT_THAT(one->way(), HasSubstr("a1"));
  here->pipes().poll();
  char bytes[16];
  const iovec part{bytes, sizeof bytes};
  EXPECT_EQ(one->receive({&part, 1}), -1);
  EXPECT_EQ(errno, ECONNRESET) << "the near port would stay idle";
}

// A completion or an event after arm() ends a sleep.
TEST_F(RingPipes, EndASleep) {
  auto [one, other] = connect();
  const auto readable = [&] {
    pollfd events{there->pipes().descriptor(), POLLIN, 0};
    return poll(&events, 1, 0) > 0;
  };
  there->pipes().arm();
  while (there->pipes().poll()) there->pipes().arm();
  EXPECT_FALSE(readable());
  EXPECT_EQ(send_some(*one, "hello"), 5U);
  fabric.run();
  EXPECT_TRUE(readable());
  there->pipes().arm();
  EXPECT_TRUE(there->pipes().poll());
  EXPECT_FALSE(readable());
  fabric.set_port("b0", 1, PortState::down);
  EXPECT_TRUE(readable());
  there->pipes().arm();
  EXPECT_FALSE(readable()) << "the event is taken";
}

TEST(RdmaSetting, NamesPorts) {
  EXPECT_THAT(ports_in("auto").value(), SizeIs(0));
  EXPECT_THAT(ports_in("always").value(), SizeIs(0));
  EXPECT_THAT(ports_in("always,mlx5_0:1,mlx5_1").value(), SizeIs(2));
  EXPECT_THAT(ports_in("always0").value(), SizeIs(1)) << "a device";
  const std::vector<PortName> ports = ports_in("mlx5_0:1,mlx5_1").value();
  ASSERT_THAT(ports, SizeIs(2));
  EXPECT_EQ(ports[0], (PortName{"mlx5_0", 1}));
  EXPECT_EQ(ports[1], (PortName{"mlx5_1", 0}));
  for (const char* const wrong : {"", ",", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:x", "mlx5_0:255", "mlx5_0:1,,"}) {
    const auto read = ports_in(wrong);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_THAT(std::string(read.status().text()), HasSubstr("wanted auto, off")) << wrong;
  }
}

// The path that these settings lead to at the end of a pipe.
QueuePairPath path_with(std::vector<const char*> settings) {
  settings.push_back(nullptr);
  const QueuePairPath path = path_in(load_config(settings.data()).value());
  FakeFabric fabric(testing::chosen_seed());
  fabric.add_ethernet("a0", "10.0.0.1");
  fabric.add_ethernet("b0", "10.0.0.2");
  RdmaHost here(fabric, {"a0"}, path);
  RdmaHost there(fabric, {"b0"}, path);
  const PipePair pipes = support::connect_pipes(here.pipes(), there.pipes(), [&] { fabric.run(); });
  const std::vector<QueuePairPath> paths = fabric.paths();
  EXPECT_THAT(paths, SizeIs(2));
  for (const QueuePairPath& each : paths) {
    EXPECT_EQ(each.traffic_class, paths[0].traffic_class);
    EXPECT_EQ(each.service_level, paths[0].service_level);
    EXPECT_EQ(each.timeout, paths[0].timeout);
    EXPECT_EQ(each.retry_count, paths[0].retry_count);
    EXPECT_NE(each.remote_queue_pair, 0U) << "what the candidate sets is there too";
    EXPECT_TRUE(each.gid_index.has_value());
  }
  return paths.at(0);
}

TEST(RdmaSetting, MarksPackets) {
  EXPECT_EQ(path_with({}).traffic_class, 0);
  EXPECT_EQ(path_with({}).service_level, 0);
  EXPECT_EQ(path_with({"SETO_RDMA_TRAFFIC_CLASS=106"}).traffic_class, 106);
  EXPECT_EQ(path_with({"SETO_DSCP_DATA=26"}).traffic_class, 104) << "as the sockets of data";
  EXPECT_EQ(path_with({"SETO_DSCP_DATA=26", "SETO_RDMA_TRAFFIC_CLASS=0"}).traffic_class, 0);
  EXPECT_EQ(path_with({"SETO_RDMA_SERVICE_LEVEL=3"}).service_level, 3);
}

TEST(RdmaSetting, SaysWhenPacketsAreRepeated) {
  EXPECT_EQ(path_with({}).timeout, 16);
  EXPECT_EQ(path_with({}).retry_count, 6);
  EXPECT_EQ(path_with({"SETO_RDMA_TIMEOUT=18"}).timeout, 18);
  EXPECT_EQ(path_with({"SETO_RDMA_RETRY_COUNT=7"}).retry_count, 7);
}

TEST(RdmaSetting, SaysWhereAPathIsFrom) {
  const char* const none[] = {nullptr};
  EXPECT_EQ(load_config(none).value().rdma_setup, RdmaSetUp::control);
  const char* const manager[] = {"SETO_RDMA_SETUP=cm", nullptr};
  EXPECT_EQ(load_config(manager).value().rdma_setup, RdmaSetUp::manager);
}

TEST(RdmaSetting, BeyondWhatTheFieldsHoldIsRefused) {
  for (const char* const wrong : {"SETO_RDMA_TRAFFIC_CLASS=256", "SETO_RDMA_SERVICE_LEVEL=16", "SETO_RDMA_TIMEOUT=0",
                                  "SETO_RDMA_TIMEOUT=32", "SETO_RDMA_RETRY_COUNT=8", "SETO_RDMA_SETUP=librdmacm"}) {
    const char* const settings[] = {wrong, nullptr};
    EXPECT_FALSE(load_config(settings).ok()) << wrong;
  }
}

TEST(RdmaSetting, ChoosesPorts) {
  FakeFabric fabric(testing::chosen_seed());
  fabric.add_ethernet("a0", "10.0.0.1");
  fabric.add_ethernet("a1", "10.1.0.1");
  const auto verbs = fabric.verbs();
  EXPECT_EQ(RdmaPipes::open(*verbs, "off").value(), nullptr);
  EXPECT_EQ(RdmaPipes::open(*verbs, "auto").value()->rails(), 2U);
  EXPECT_EQ(RdmaPipes::open(*verbs, "a1").value()->rails(), 1U);
  EXPECT_EQ(RdmaPipes::open(*verbs, "a1:2").value(), nullptr);
  EXPECT_EQ(RdmaPipes::open(*verbs, "c0").value(), nullptr);
  fabric.set_port("a0", 1, PortState::down);
  const auto one_down = RdmaPipes::open(*verbs, "auto").value();
  EXPECT_EQ(one_down->rails(), 2U) << "it may come up";
  EXPECT_EQ(one_down->usable(), 1U);
  fabric.set_port("a1", 1, PortState::down);
  EXPECT_EQ(RdmaPipes::open(*verbs, "auto").value(), nullptr);
  const auto named = RdmaPipes::open(*verbs, "a1").value();
  ASSERT_NE(named, nullptr) << "its user waits for it";
  EXPECT_EQ(named->rails(), 1U);
  EXPECT_EQ(named->usable(), 0U);
}

// Ports of the same distance count; farther ones wait until they are the nearest.
TEST(RdmaPorts, OfADeviceThatDoesNotAnswerAreLeftOutWithTheReason) {
  FakeFabric fabric(testing::chosen_seed());
  fabric.add_ethernet("a0", "10.0.0.1");
  fabric.add_ethernet("a1", "10.1.0.1");
  const LogCapture log;
  fabric.fail(VerbsCall::query_port, EIO);
  const auto verbs = fabric.verbs();
  EXPECT_EQ(RdmaPipes::open(*verbs, "a0,a1").value()->rails(), 1U);
  EXPECT_TRUE(log.contains("SETO_RDMA: ibv_query_port of a0 failed"));
}

TEST(RdmaPorts, FarOnesAreSpares) {
  FakeFabric fabric(testing::chosen_seed());
  for (const char* const name : {"a0", "a1", "a2"}) fabric.add_ethernet(name, std::string("10.0.0.") + name[1]);
  fabric.set_distance("a0", 21);
  const auto verbs = fabric.verbs();
  const auto pipes = RdmaPipes::open(*verbs, "auto").value();
  EXPECT_EQ(pipes->rails(), 3U);
  EXPECT_EQ(pipes->usable(), 2U);
  fabric.set_port("a1", 1, PortState::down);
  pipes->arm();
  EXPECT_EQ(pipes->usable(), 1U);
  fabric.set_address("a2", {});
  pipes->arm();
  EXPECT_EQ(pipes->usable(), 1U) << "the far one";
  fabric.set_port("a0", 1, PortState::down);
  pipes->arm();
  EXPECT_EQ(pipes->usable(), 0U);
}

// A call of a job of more than 33 hosts has 32 peers of a rank at most (kMostPeers), where a plan allows that: so a rank that is
// bound to a node with two ports has 64 queue pairs, and one with many equal ports 128.
TEST(RdmaPorts, ToOnePeerAreAtMostFourAndNearOnes) {
  constexpr std::uint32_t kPeers = 32;
  FakeFabric fabric(testing::chosen_seed());
  for (int device = 0; device < 6; ++device)
    fabric.add_ethernet("mlx5_" + std::to_string(device), "10." + std::to_string(device) + ".0.1");
  const auto verbs = fabric.verbs();
  const auto equal = RdmaPipes::open(*verbs, "auto").value();
  EXPECT_EQ(equal->rails(), 4U);
  EXPECT_EQ(equal->usable(), 4U);
  for (int device = 2; device < 6; ++device) fabric.set_distance("mlx5_" + std::to_string(device), 21);
  EXPECT_LE(kPeers * RdmaPipes::open(*verbs, "auto").value()->usable(), 64U);
}

TEST(RdmaPorts, WithoutAnIpAddressCountWhereNoneHasOne) {
  FakeFabric fabric(testing::chosen_seed());
  for (const char* const name : {"a0", "a1", "a2"}) fabric.add_ethernet(name, std::string("10.0.0.") + name[1]);
  for (const char* const far : {"a1", "a2"}) fabric.set_distance(far, 21);
  fabric.take_ip_address("a0");
  const auto verbs = fabric.verbs();
  const auto pipes = RdmaPipes::open(*verbs, "auto").value();
  EXPECT_EQ(pipes->usable(), 2U) << "the far ones, which can carry something";
  fabric.take_ip_address("a1");
  fabric.take_ip_address("a2");
  pipes->arm();
  EXPECT_EQ(pipes->usable(), 1U) << "the near one";
}

// Events are taken before each sleep.
TEST(RdmaPorts, ChangeAsEventsSay) {
  FakeFabric fabric(testing::chosen_seed());
  fabric.add_ethernet("a0", "10.0.0.1");
  fabric.add_ethernet("a1", "10.1.0.1");
  const auto verbs = fabric.verbs();
  const auto pipes = RdmaPipes::open(*verbs, "auto").value();
  auto expect_usable = [&, changes = pipes->changes()](std::uint32_t usable) mutable {
    pipes->arm();
    EXPECT_EQ(pipes->usable(), usable);
    EXPECT_GT(pipes->changes(), changes);
    changes = pipes->changes();
    pipes->arm();
    EXPECT_EQ(pipes->changes(), changes) << "nothing has happened since";
  };
  fabric.set_port("a0", 1, PortState::down);
  expect_usable(1);
  fabric.set_port("a1", 1, PortState::down);
  expect_usable(0);
  fabric.set_port("a0", 1, PortState::active);
  expect_usable(1);
  fabric.set_address("a1", "10.1.0.9");
  expect_usable(1);
  fabric.remove("a0");
  expect_usable(0);
  fabric.set_port("a1", 1, PortState::active);
  expect_usable(1);
  EXPECT_EQ(pipes->rails(), 2U);
}

}  // namespace
}  // namespace seto::rdma

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"
#include "transports/rdma/connect/channel_set_up.h"

namespace seto::rdma {

inline std::uint64_t now_ns = 0;

// Two hosts with two rails: a0 and b0 in one network, a1 and b1 in another one.
class SetUp : public ::testing::Test {
 protected:
  SetUp() {
    fabric.add_ethernet("a0", "10.0.0.1");
    fabric.add_ethernet("b0", "10.0.0.2");
    fabric.add_ethernet("a1", "10.1.0.1");
    fabric.add_ethernet("b1", "10.1.0.2");
    now_ns = 1;
  }

  void open(std::vector<std::string> here = {"a0", "a1"}, std::vector<std::string> there = {"b0", "b1"}) {
    const std::vector<std::string> names[2] = {std::move(here), std::move(there)};
    for (std::size_t i = 0; i < 2; ++i) {
      support::HostVerbs verbs(fabric, names[i]);
      devices[i] = Devices::open(verbs).value();
    }
  }
  void begin() {
    for (std::size_t i = 0; i < 2; ++i) {
      ChannelSetUp::Setup setup;
      setup.role = i == 0 ? ChannelSetUp::Role::selects : ChannelSetUp::Role::follows;
      setup.devices = devices[i].get();
      setup.peer = "rank " + std::to_string(1 - i);
      setup.random = [this] { return static_cast<std::uint32_t>(random()); };
      setup.clock = [] { return now_ns; };
      setup.ring_size = 16 << 10;
      setup.records = 32;
      setup.manager = managers[i];
      setup.path.traffic_class = traffic_class;
      ends[i] = std::make_unique<ChannelSetUp>(std::move(setup));
    }
  }
  bool pass_messages() {
    bool any = false;
    for (std::size_t i = 0; i < 2; ++i)
      while (const auto message = ends[i]->next_message()) {
        EXPECT_TRUE(ends[1 - i]->hear(*message).ok()) << ends[1 - i]->why().text();
        ++messages;
        any = true;
      }
    return any;
  }
  // Until both ends have ended.
  void run() {
    for (int rounds = 0; rounds < 1'000; ++rounds) {
      pass_messages();
      fabric.run();
      const bool here = ends[0]->advance();
      const bool there = ends[1]->advance();
      if (here && there && !pass_messages()) return;
    }
    FAIL() << "the set-up does not end";
  }
  void expect_channel(const std::string& own, const std::string& peer) {
    for (const auto& end : ends) ASSERT_TRUE(end->why().ok()) << end->why().text();
    EXPECT_EQ(ends[0]->candidate().own.device, own);
    EXPECT_EQ(ends[0]->candidate().peer.device, peer);
    const auto one = ends[0]->take();
    const auto other = ends[1]->take();
    ASSERT_TRUE(one != nullptr && other != nullptr);
    ASSERT_TRUE(one->send(std::as_bytes(std::span("hello")), {}));
    one->flush();
    fabric.run();
    ASSERT_TRUE(devices[1]->poll().ok());
    EXPECT_EQ(other->front().size(), sizeof "hello");
  }
  // Messages are changed or lost on their way.
  void survive_random_messages() {
    open();
    for (int i = 0; i < 300; ++i) {
      begin();
      for (int rounds = 0; rounds < 20; ++rounds) {
        for (std::size_t from = 0; from < 2; ++from)
          while (auto message = ends[from]->next_message()) {
            if (random() % 4 == 0) (*message)[random() % message->size()] = static_cast<char>(random());
            if (random() % 16 == 0) continue;
            (void)ends[1 - from]->hear(*message).ok();
          }
        fabric.run();
        for (const auto& end : ends) (void)end->advance();
      }
      for (const auto& end : ends) {
        const bool ended_well = end->take() != nullptr;
        EXPECT_TRUE(!ended_well || end->why().ok());
      }
    }
  }
  void expect_none(const std::string& text) {
    for (const auto& end : ends) {
      EXPECT_EQ(end->take(), nullptr);
      EXPECT_EQ(end->why().code(), Code::unavailable);
      EXPECT_THAT(std::string(end->why().text()), ::testing::HasSubstr(text));
    }
    EXPECT_EQ(ends[0]->why().text(), ends[1]->why().text()) << "both ends say the same";
  }

  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random{seed};
  support::FakeFabric fabric{seed};
  std::unique_ptr<Devices> devices[2];
  ConnectionManager* managers[2] = {};
  std::uint8_t traffic_class = 0;
  std::unique_ptr<ChannelSetUp> ends[2];
  int messages = 0;
};

}  // namespace seto::rdma

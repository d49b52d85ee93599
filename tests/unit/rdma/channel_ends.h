#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "transports/rdma/link/ring_channel.h"

namespace seto::rdma {

// One end of a channel between two fake devices.
struct ChannelEnd {
  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<VerbsDevice> device;
  std::unique_ptr<Completions> completions;
  std::unique_ptr<RingChannel> channel;

  void close() {
    channel.reset();
    completions.reset();
    device.reset();
    verbs.reset();
  }
  void poll() {
    const Result<bool> polled = completions->poll();
    EXPECT_TRUE(polled.ok()) << polled.status().text();
    channel->flush();
  }
};

inline RingChannel::Setup setup_of(ChannelEnd& end, const std::string& peer, std::uint64_t ring_size, std::uint32_t records) {
  RingChannel::Setup setup;
  setup.device = end.device.get();
  setup.completions = end.completions.get();
  setup.peer = peer;
  setup.ring_size = ring_size;
  setup.records = records;
  const PortFacts port = end.device->facts().value().ports.at(0);
  setup.mtu = port.mtu;
  setup.lid = port.lid;
  if (port.link_layer == LinkLayer::ethernet) {
    setup.path.gid_index = port.gids.back().index;
    setup.gid = port.gids.back().gid;
  }
  return setup;
}

class ChannelTest : public ::testing::Test {
 protected:
  // The fabric, which a test owns, ends before this object.
  void TearDown() override { close(); }
  void close() {
    for (ChannelEnd& end : ends) end.close();
  }

  void open(support::FakeFabric& fabric, std::uint64_t ring_size = 16 << 10, std::uint32_t records = 32) {
    const std::vector<std::string> names = fabric.verbs()->devices().value();
    for (std::size_t i = 0; i < 2; ++i) {
      ends[i].verbs = fabric.verbs();
      ends[i].device = ends[i].verbs->open_device(names.at(i)).value();
      ends[i].completions = Completions::create(*ends[i].device).value();
      RingChannel::Setup setup = setup_of(ends[i], "rank " + std::to_string(1 - i), ring_size, records);
      setup.sequence = static_cast<std::uint32_t>(1'000 + i);
      ends[i].channel = RingChannel::create(std::move(setup)).value();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const Status status = ends[i].channel->connect(ends[1 - i].channel->address());
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }

  static bool send(ChannelEnd& end, const std::string& head, const std::string& body = {}) {
    return end.channel->send(std::as_bytes(std::span(head)), std::as_bytes(std::span(body)));
  }
  static std::string front(const ChannelEnd& end) {
    const auto bytes = end.channel->front();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ChannelEnd ends[2];
};

}  // namespace seto::rdma

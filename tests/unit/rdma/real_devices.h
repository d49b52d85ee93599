#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/ring_channel.h"
#include "transports/rdma/verbs/libibverbs.h"

namespace seto::rdma {

// A machine that is emulated on a busy host is held up for long; the limits only end tests that hang.
inline constexpr std::uint64_t kPatienceMs = 300'000;
inline constexpr std::uint8_t kPatientTimeout = 17;  // 0.54 s, seven times
inline constexpr const char* kNeedsDevice = "skipped: needs an RDMA device whose port can be used (./dev lab rdma has one)";

struct RealEnd {
  std::unique_ptr<VerbsDevice> device;
  std::unique_ptr<Completions> completions;
  std::unique_ptr<RingChannel> channel;
};

class RealDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Libibverbs::open();
    if (!opened.ok()) GTEST_SKIP() << "skipped: " << opened.status().text();
    verbs = std::move(opened).value();
    const auto names = verbs->devices();
    ASSERT_TRUE(names.ok()) << names.status().text();
    for (const std::string& name : names.value()) {
      auto device = verbs->open_device(name);
      ASSERT_TRUE(device.ok()) << device.status().text();
      auto asked = device.value()->facts();
      ASSERT_TRUE(asked.ok()) << asked.status().text();
      facts.push_back(std::move(asked).value());
    }
    const SelectionInput input{ports_of(facts), ports_of(facts), 0};
    const Selection selection = select(input);
    if (selection.candidates.empty()) GTEST_SKIP() << kNeedsDevice << ": " << explain_none(input, selection);
    candidate = selection.candidates.front();
    // Two devices, where there are two.
    for (const Candidate& one : selection.candidates)
      if (one.own.device != one.peer.device && one.own.gid_index.has_value() && !one.own.gid.link_local()) {
        candidate = one;
        break;
      }
  }

  void open(std::uint64_t ring_size = 256 << 10, std::uint32_t records = 128) {
    const PortEnd* const sides[2] = {&candidate.own, &candidate.peer};
    for (std::size_t i = 0; i < 2; ++i) {
      ends[i].device = verbs->open_device(sides[i]->device).value();
      ends[i].completions = Completions::create(*ends[i].device).value();
      RingChannel::Setup setup;
      setup.device = ends[i].device.get();
      setup.completions = ends[i].completions.get();
      setup.peer = "rank " + std::to_string(1 - i);
      setup.ring_size = ring_size;
      setup.records = records;
      setup.sequence = static_cast<std::uint32_t>(77 + i);
      setup.path.port = sides[i]->port;
      setup.path.timeout = kPatientTimeout;
      setup.path.pkey_index = sides[i]->pkey_index;
      setup.path.gid_index = sides[i]->gid_index;
      setup.gid = sides[i]->gid;
      setup.lid = sides[i]->lid;
      setup.mtu = candidate.mtu;
      auto made = RingChannel::create(std::move(setup));
      ASSERT_TRUE(made.ok()) << made.status().text();
      ends[i].channel = std::move(made).value();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const Status status = ends[i].channel->connect(ends[1 - i].channel->address());
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }
  void poll() {
    for (RealEnd& end : ends) {
      const auto polled = end.completions->poll();
      ASSERT_TRUE(polled.ok()) << polled.status().text();
      end.channel->flush();
      ASSERT_FALSE(end.channel->broken()) << end.channel->why().text();
    }
  }

  std::unique_ptr<Verbs> verbs;
  std::vector<DeviceFacts> facts;
  Candidate candidate;
  RealEnd ends[2];
};

}  // namespace seto::rdma

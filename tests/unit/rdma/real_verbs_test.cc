#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "transports/rdma/connect/channel_set_up.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/ring_channel.h"
#include "transports/rdma/verbs/libibverbs.h"

// The same code over libibverbs. Without an RDMA device only the opening is tested; tests/rdma_lab has a machine with devices.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNeedsDevice = "skipped: needs an RDMA device with an active port (./dev lab rdma has one)";

TEST(RealVerbs, AMissingLibraryIsNamedWithItsPackage) {
  const auto opened = Libibverbs::open("libibverbs_that_is_missing.so.1");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::unavailable);
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("install rdma-core"));
}

TEST(RealVerbs, AnotherLibraryIsTooOld) {
  const auto opened = Libibverbs::open("libc.so.6");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("has no function ibv_get_device_list"));
}

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
    const Selection selection = select({ports_of(facts), ports_of(facts), 0});
    if (selection.candidates.empty()) GTEST_SKIP() << kNeedsDevice;
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

TEST_F(RealDevices, AreChosenWithAReason) {
  std::printf("chosen: %s\n", to_text(candidate).c_str());
  EXPECT_FALSE(candidate.why.empty());
  EXPECT_GE(candidate.mtu, 256U);
}

TEST_F(RealDevices, CarryRecordsInOrderInBothDirections) {
  open();
  for (RealEnd& end : ends) end.channel->probe();
  const Deadline until = Deadline::after_ms(60'000);
  std::uint64_t sent[2] = {}, read[2] = {};
  constexpr std::uint64_t kRecords = 2'000;
  std::vector<std::byte> record(20'000);
  const auto size_of = [](std::uint64_t number) { return 8 + number * 7'919 % 19'000; };
  while (read[0] < kRecords || read[1] < kRecords) {
    ASSERT_FALSE(until.passed()) << "read " << read[0] << " and " << read[1];
    ASSERT_NO_FATAL_FAILURE(poll());
    for (std::size_t i = 0; i < 2; ++i) {
      RingChannel& channel = *ends[i].channel;
      for (; sent[i] < kRecords; ++sent[i]) {
        std::memset(record.data(), static_cast<int>(sent[i] % 251), record.size());
        std::memcpy(record.data(), &sent[i], sizeof sent[i]);
        if (!channel.send(std::span(record).first(size_of(sent[i])), {})) break;
      }
      channel.flush();
      for (auto arrived = channel.front(); !arrived.empty(); arrived = channel.front()) {
        ASSERT_EQ(arrived.size(), size_of(read[i])) << "record " << read[i];
        std::memset(record.data(), static_cast<int>(read[i] % 251), record.size());
        std::memcpy(record.data(), &read[i], sizeof read[i]);
        ASSERT_EQ(std::memcmp(arrived.data(), record.data(), arrived.size()), 0) << "record " << read[i];
        channel.release();
        ++read[i];
      }
    }
  }
  EXPECT_TRUE(ends[0].channel->proved() && ends[1].channel->proved());
}

TEST_F(RealDevices, AreSetUpByMessagesAndAProbe) {
  std::unique_ptr<Devices> devices[2];
  std::unique_ptr<ChannelSetUp> set_up[2];
  std::uint32_t random = 4'711;
  for (std::size_t i = 0; i < 2; ++i) {
    devices[i] = Devices::open(*verbs).value();
    ChannelSetUp::Setup setup;
    setup.role = i == 0 ? ChannelSetUp::Role::selects : ChannelSetUp::Role::follows;
    setup.devices = devices[i].get();
    setup.peer = "rank " + std::to_string(1 - i);
    setup.random = [&random] { return random = random * 1'664'525 + 1'013'904'223; };
    set_up[i] = std::make_unique<ChannelSetUp>(std::move(setup));
  }
  const Deadline until = Deadline::after_ms(60'000);
  for (bool ended = false; !ended;) {
    ASSERT_FALSE(until.passed());
    for (std::size_t i = 0; i < 2; ++i)
      while (const auto message = set_up[i]->next_message()) ASSERT_TRUE(set_up[1 - i]->hear(*message).ok());
    const bool here = set_up[0]->advance();
    ended = set_up[1]->advance() && here;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto channel = set_up[i]->take();
    EXPECT_NE(channel, nullptr) << set_up[i]->why().text();
  }
  std::printf("in use: %s\n", to_text(set_up[0]->candidate()).c_str());
}

TEST_F(RealDevices, WakeASleeper) {
  open();
  ASSERT_TRUE(ends[1].completions->arm().ok());
  ASSERT_NO_FATAL_FAILURE(poll());
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("wake up")), {}));
  ends[0].channel->flush();
  pollfd event{ends[1].completions->descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&event, 1, 20'000), 1);
  ASSERT_NO_FATAL_FAILURE(poll());
  EXPECT_EQ(ends[1].channel->front().size(), sizeof "wake up");
}

TEST_F(RealDevices, TellWhenThePeerIsGone) {
  open();
  ends[1].channel.reset();
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("to no one")), {}));
  ends[0].channel->flush();
  ends[0].channel->settle();
  const Deadline until = Deadline::after_ms(60'000);
  while (!ends[0].channel->broken()) {
    ASSERT_FALSE(until.passed()) << "no failure was reported";
    ASSERT_TRUE(ends[0].completions->poll().ok());
    ends[0].channel->flush();
  }
  std::printf("%s\n", std::string(ends[0].channel->why().text()).c_str());
  EXPECT_THAT(std::string(ends[0].channel->why().text()), HasSubstr("RDMA to rank 1 failed"));
}

TEST_F(RealDevices, RefuseMemoryThatIsNotMapped) {
  open();
  const auto region = ends[0].device->register_memory(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20), 4'096);
  ASSERT_FALSE(region.ok());
  EXPECT_THAT(std::string(region.status().text()), HasSubstr("ibv_reg_mr"));
}

}  // namespace
}  // namespace seto::rdma

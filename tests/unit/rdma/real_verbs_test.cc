#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/rdma/real_devices.h"
#include "transports/rdma/connect/channel_set_up.h"

// The same code over libibverbs. Without an RDMA device only the opening is tested; tests/rdma_lab has a machine with devices.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

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

TEST_F(RealDevices, AreChosenWithAReason) {
  std::printf("chosen: %s\n", to_text(candidate).c_str());
  EXPECT_FALSE(candidate.why.empty());
  EXPECT_GE(candidate.mtu, 256U);
}

TEST_F(RealDevices, CarryRecordsInOrderInBothDirections) {
  open();
  for (RealEnd& end : ends) end.channel->probe();
  const Deadline until = Deadline::after_ms(kPatienceMs);
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
    setup.probe_ms = kPatienceMs;
    setup.random = [&random] { return random = random * 1'664'525 + 1'013'904'223; };
    set_up[i] = std::make_unique<ChannelSetUp>(std::move(setup));
  }
  const Deadline until = Deadline::after_ms(kPatienceMs);
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
  ASSERT_EQ(::poll(&event, 1, static_cast<int>(kPatienceMs)), 1);
  ASSERT_NO_FATAL_FAILURE(poll());
  EXPECT_EQ(ends[1].channel->front().size(), sizeof "wake up");
}

// Completions that wait in the queue are still there when it has grown.
TEST_F(RealDevices, EnlargeTheirQueueOfCompletions) {
  open();
  if (facts.front().most_completions <= Completions::kFirstDepth)
    GTEST_SKIP() << "skipped: needs a device that allows more completions than a queue has at first";
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("before")), {}));
  ends[0].channel->flush();
  ends[0].channel->settle();
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (!ends[0].channel->delivered()) {
    ASSERT_FALSE(until.passed());
    ASSERT_TRUE(ends[0].completions->poll().ok());
  }
  std::vector<std::unique_ptr<RingChannel>> more;
  for (std::uint32_t places = 0; places <= Completions::kFirstDepth; places += 2 * kMostRecords) {
    RingChannel::Setup setup;
    setup.device = ends[1].device.get();
    setup.completions = ends[1].completions.get();
    setup.ring_size = kSmallestRing;
    setup.records = kMostRecords;
    setup.path.port = candidate.peer.port;
    setup.path.pkey_index = candidate.peer.pkey_index;
    auto made = RingChannel::create(std::move(setup));
    ASSERT_TRUE(made.ok()) << made.status().text();
    more.push_back(std::move(made).value());
  }
  ASSERT_NO_FATAL_FAILURE(poll());
  ASSERT_EQ(ends[1].channel->front().size(), sizeof "before");
  ends[1].channel->release();
  ASSERT_TRUE(ends[1].completions->arm().ok());
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("behind")), {}));
  ends[0].channel->flush();
  pollfd event{ends[1].completions->descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&event, 1, static_cast<int>(kPatienceMs)), 1);
  ASSERT_NO_FATAL_FAILURE(poll());
  EXPECT_EQ(ends[1].channel->front().size(), sizeof "behind");
}

TEST_F(RealDevices, TellWhenThePeerIsGone) {
  open();
  ends[1].channel.reset();
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("to no one")), {}));
  ends[0].channel->flush();
  ends[0].channel->settle();
  const Deadline until = Deadline::after_ms(kPatienceMs);
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

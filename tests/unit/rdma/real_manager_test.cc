#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

#include "src/net/token.h"
#include "tests/unit/rdma/real_devices.h"
#include "transports/rdma/connect/channel_set_up.h"
#include "transports/rdma/verbs/librdmacm.h"

namespace seto::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Set-ups over the connection manager and the devices of this machine.
class RealManager : public RealDevices {
 protected:
  void SetUp() override {
    RealDevices::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto opened = Librdmacm::open();
    if (!opened.ok() && access("/dev/infiniband/rdma_cm", F_OK) != 0)
      GTEST_SKIP() << "skipped: needs librdmacm and the kernel module rdma_ucm: " << opened.status().text();
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    manager = std::move(opened).value();
    const PortEnd* const sides[2] = {&candidate.own, &candidate.peer};
    for (std::size_t i = 0; i < 2; ++i) {
      devices[i] = Devices::open(*verbs, {{sides[i]->device, sides[i]->port}}).value();
      ChannelSetUp::Setup setup;
      setup.role = i == 0 ? ChannelSetUp::Role::selects : ChannelSetUp::Role::follows;
      setup.devices = devices[i].get();
      setup.peer = "rank " + std::to_string(1 - i);
      setup.random = [] { return 5U; };
      setup.manager = manager.get();
      setup.manager_ms = setup.probe_ms = kPatienceMs;
      setup.path.timeout = kPatientTimeout;
      setup.path.traffic_class = 104;
      set_ups[i] = std::make_unique<ChannelSetUp>(std::move(setup));
    }
  }
  // Passes messages from each end that it keeps to the other one, changed on their way if there is a reason for it.
  void run(const std::function<void(std::string&)>& change = [](std::string&) {}) {
    const std::uint64_t until = monotonic_ns() + kPatienceMs * 1'000'000;
    for (bool here = false, there = false; !here || !there;) {
      ASSERT_LT(monotonic_ns(), until) << "the set-up does not end";
      for (std::size_t i = 0; i < 2; ++i)
        while (auto message = set_ups[i]->next_message()) {
          change(*message);
          ASSERT_TRUE(set_ups[1 - i]->hear(*message).ok()) << set_ups[1 - i]->why().text();
        }
      here = set_ups[0]->advance();
      there = set_ups[1]->advance();
      std::this_thread::yield();
    }
  }
  void expect_channel() {
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(set_ups[i]->why().ok()) << set_ups[i]->why().text();
      EXPECT_TRUE(set_ups[i]->by_manager());
      channels[i] = set_ups[i]->take();
      ASSERT_NE(channels[i], nullptr);
    }
    // More than a ring in both directions, after the manager has forgotten the connection.
    std::vector<std::byte> record(40'000);
    for (std::size_t sent = 0, got[2] = {}; got[0] < 20 || got[1] < 20;) {
      for (std::size_t i = 0; i < 2; ++i) {
        record[0] = static_cast<std::byte>(sent);
        if (channels[i]->send(record, {})) ++sent;
        ASSERT_TRUE(devices[i]->poll().ok());
        for (; !channels[i]->front().empty(); ++got[i]) {
          EXPECT_EQ(channels[i]->front().size(), record.size());
          channels[i]->release();
        }
        channels[i]->flush();
        ASSERT_FALSE(channels[i]->broken()) << channels[i]->why().text();
      }
    }
  }

  std::unique_ptr<ConnectionManager> manager;
  std::unique_ptr<Devices> devices[2];
  std::unique_ptr<ChannelSetUp> set_ups[2];
  std::unique_ptr<RingChannel> channels[2];
};

TEST_F(RealManager, SetsUpAChannel) {
  run();
  for (const std::string& failed : set_ups[0]->failed()) ADD_FAILURE() << failed;
  expect_channel();
}

// It calls where the follower listens, with a token of its own, before the peer does.
TEST_F(RealManager, RefusesAnUnauthenticatedCaller) {
  std::unique_ptr<ManagedConnection> foreign;
  std::string refused;
  const auto follow_foreign = [&] {
    while (foreign != nullptr) {
      const auto event = foreign->next_event();
      if (!event.has_value()) return;
      Status status;
      if (event->kind == ManagerEvent::Kind::address_resolved) status = foreign->resolve_route();
      if (event->kind == ManagerEvent::Kind::route_resolved) status = foreign->call({17, random_token()});
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_NE(event->kind, ManagerEvent::Kind::answered);
      if (event->kind == ManagerEvent::Kind::failed) refused = event->why;
    }
  };
  run([&](std::string& message) {
    const auto decoded = decode_set_up(message);
    if (!decoded.ok() || !std::holds_alternative<Acceptance>(decoded.value()) || foreign != nullptr) return;
    const Listener listener = std::get<Acceptance>(decoded.value()).listener.value();
    foreign = manager->new_connection().value();
    ManagerAddress own;
    own.gid = candidate.own.gid;
    own.infiniband = !candidate.own.gid_index.has_value();
    ManagerAddress peer = own;
    peer.gid = listener.gid;
    peer.service = listener.service;
    ASSERT_TRUE(foreign->resolve_address({own, peer, 0, 10'000}).ok());
    const std::uint64_t until = monotonic_ns() + kPatienceMs * 1'000'000;
    while (refused.empty() && monotonic_ns() < until) {
      follow_foreign();
      (void)set_ups[1]->advance();
      std::this_thread::yield();
    }
  });
  EXPECT_THAT(refused, HasSubstr("REJECTED"));
  EXPECT_THAT(set_ups[0]->failed(), SizeIs(0));
  expect_channel();
}

// The manager of the other host answers at once that no process listens there: it is another number than the one that was told.
TEST_F(RealManager, ACallThatHasNoListenerFailsWithTheReason) {
  run([&](std::string& message) {
    const auto decoded = decode_set_up(message);
    if (!decoded.ok() || !std::holds_alternative<Acceptance>(decoded.value())) return;
    Acceptance acceptance = std::get<Acceptance>(decoded.value());
    acceptance.listener->service = 1;
    message = encode(acceptance);
  });
  EXPECT_EQ(set_ups[0]->take(), nullptr);
  EXPECT_THAT(std::string(set_ups[0]->why().text()), HasSubstr("REJECTED, status 8"));
  EXPECT_EQ(set_ups[0]->why().text(), set_ups[1]->why().text());
}

}  // namespace
}  // namespace seto::rdma

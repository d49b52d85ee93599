#include "transports/rdma/connect/channel_set_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::uint64_t now_ns = 0;

// The names of fake devices that one host has.
class HostVerbs final : public Verbs {
 public:
  HostVerbs(FakeFabric& fabric, std::vector<std::string> names) : all_(fabric.verbs()), names_(std::move(names)) {}
  Result<std::vector<std::string>> devices() override { return names_; }
  Result<std::unique_ptr<VerbsDevice>> open_device(const std::string& name) override { return all_->open_device(name); }

 private:
  const std::unique_ptr<Verbs> all_;
  const std::vector<std::string> names_;
};

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
      HostVerbs verbs(fabric, names[i]);
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
  void expect_none(const std::string& text) {
    for (const auto& end : ends) {
      EXPECT_EQ(end->take(), nullptr);
      EXPECT_EQ(end->why().code(), Code::unavailable);
      EXPECT_THAT(std::string(end->why().text()), HasSubstr(text));
    }
    EXPECT_EQ(ends[0]->why().text(), ends[1]->why().text()) << "both ends say the same";
  }

  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random{seed};
  FakeFabric fabric{seed};
  std::unique_ptr<Devices> devices[2];
  std::unique_ptr<ChannelSetUp> ends[2];
  int messages = 0;
};

TEST_F(SetUp, TakesTheFirstPathThatCarriesAMessage) {
  open();
  begin();
  run();
  EXPECT_EQ(messages, 5);
  EXPECT_THAT(ends[0]->failed(), SizeIs(0));
  expect_channel("a0", "b0");
}

TEST_F(SetUp, TakesTheNextOneIfTheFirstCarriesNothing) {
  fabric.separate("a0", "b0");
  open();
  begin();
  run();
  ASSERT_THAT(ends[0]->failed(), SizeIs(1));
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("a0 port 1, GID 3 (10.0.0.1)"));
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("no answer from the peer's device"));
  expect_channel("a1", "b1");
}

TEST_F(SetUp, WaitsForAProbeOnlySoLong) {
  open({"a0"}, {"b0"});
  begin();
  for (int rounds = 0; rounds < 10; ++rounds) {  // the fabric stands still
    pass_messages();
    EXPECT_FALSE(ends[0]->advance());
  }
  for (int rounds = 0; rounds < 100 && !ends[0]->advance(); ++rounds) {
    now_ns += 2'000'000'000;
    pass_messages();
  }
  pass_messages();
  expect_none("no message came through");
}

TEST_F(SetUp, EndsAtBothIfNoPathWorks) {
  for (const char* const here : {"a0", "a1"})
    for (const char* const there : {"b0", "b1"}) fabric.separate(here, there);
  open();
  begin();
  run();
  expect_none("no RDMA path to rank 1 works: [a0 port 1, GID 3");
  EXPECT_THAT(ends[0]->failed(), SizeIs(8));
}

TEST_F(SetUp, EndsAtOnceWithoutADevice) {
  open({"a0"}, {});
  begin();
  run();
  expect_none("the peer's host has no RDMA device");
}

TEST_F(SetUp, EndsAtOnceWithoutAnActivePort) {
  open({"a0"}, {"b0"});
  fabric.set_port("b0", 1, PortState::down);
  begin();
  run();
  expect_none("the peer's b0 port 1 is not active");
}

TEST_F(SetUp, GoesOnWhenACallFails) {
  for (const VerbsCall call : {VerbsCall::register_memory, VerbsCall::create_queue_pair, VerbsCall::prepare,
                               VerbsCall::post_receive, VerbsCall::ready_to_receive, VerbsCall::ready_to_send})
    for (const std::uint64_t after : {0, 1}) {  // the first call, or the next one
      open();
      begin();
      fabric.fail(call, ENOMEM, after);
      run();
      ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << name_of(call) << " after " << after;
      EXPECT_THAT(ends[0]->failed()[0], HasSubstr(name_of(call)));
      for (const auto& end : ends) EXPECT_NE(end->take(), nullptr) << name_of(call);
    }
}

TEST_F(SetUp, ALimitOfLockedMemoryIsNamedWithItsRemedyAtBothEnds) {
  open({"a0"}, {"b0"});
  begin();
  for (int calls = 0; calls < 100; ++calls) fabric.fail(VerbsCall::register_memory, ENOMEM);
  run();
  expect_none("raise the limit of locked memory");
  EXPECT_EQ(fabric.registered_bytes(), 0U);
}

TEST_F(SetUp, OfPeersWithDifferentMtusTakesTheSmallerOne) {
  fabric.add_ethernet("c0", "10.0.0.3", 1'024);
  open({"a0"}, {"c0"});
  begin();
  run();
  for (const auto& end : ends) EXPECT_EQ(end->mtu(), 1'024U);
  ASSERT_THAT(fabric.paths(), SizeIs(2));
  for (const QueuePairPath& path : fabric.paths()) EXPECT_EQ(path.mtu, 1'024U);
  expect_channel("a0", "c0");
}

// It has the number of a queue pair that exists no more, or is another one by now.
TEST_F(SetUp, IgnoresAnAnswerToAnEarlierAttempt) {
  fabric.separate("a0", "b0");
  open();
  begin();
  std::string earlier;
  for (int rounds = 0; rounds < 1'000 && ends[0]->failed().empty(); ++rounds) {
    while (const auto message = ends[0]->next_message()) ASSERT_TRUE(ends[1]->hear(*message).ok());
    while (const auto message = ends[1]->next_message()) {
      if (std::holds_alternative<Acceptance>(decode_set_up(*message).value())) earlier = *message;
      ASSERT_TRUE(ends[0]->hear(*message).ok());
    }
    fabric.run();
    for (const auto& end : ends) end->advance();
  }
  ASSERT_THAT(ends[0]->failed(), SizeIs(1));
  ASSERT_FALSE(earlier.empty());
  EXPECT_TRUE(ends[0]->hear(earlier).ok());
  run();
  EXPECT_THAT(ends[0]->failed(), SizeIs(1));
  expect_channel("a1", "b1");
}

TEST_F(SetUp, ADeviceThatCannotBeOpenedIsLeftOut) {
  fabric.fail(VerbsCall::open_device, EACCES);
  open();
  ASSERT_THAT(devices[0]->troubles(), SizeIs(1));
  EXPECT_THAT(devices[0]->troubles()[0], HasSubstr("/dev/infiniband/uverbs"));
  begin();
  run();
  expect_channel("a1", "b1");
}

TEST_F(SetUp, APeerWithAnotherRingIsRefused) {
  open();
  begin();
  ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
  auto proposal = std::get<Proposal>(decode_set_up(*ends[0]->next_message()).value());
  proposal.address.ring_size *= 2;
  ASSERT_TRUE(ends[1]->hear(encode(proposal)).ok());
  const auto refusal = std::get<Refusal>(decode_set_up(*ends[1]->next_message()).value());
  EXPECT_THAT(refusal.why, HasSubstr("ring of 32768 bytes"));
}

TEST_F(SetUp, MessagesOutOfTurnEndIt) {
  open();
  const std::string offer = encode(Offer{});
  const std::string decision = encode(Decision{1, Verdict::use, {}});
  begin();
  EXPECT_THAT(std::string(ends[1]->hear(offer).text()), HasSubstr("not its turn"));
  EXPECT_THAT(std::string(ends[0]->hear(decision).text()), HasSubstr("not its turn"));
  begin();
  EXPECT_THAT(std::string(ends[0]->hear("garbage").text()), HasSubstr("malformed"));
  begin();
  run();
  EXPECT_THAT(std::string(ends[0]->hear(encode(Refusal{1, "late"})).text()), HasSubstr("not its turn"));
}

TEST_F(SetUp, SurvivesRandomMessages) {
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

}  // namespace
}  // namespace seto::rdma

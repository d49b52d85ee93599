// How both ends of a link set up its rails: the messages arrive when the test says so, and many at once.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/sanitizers.h"
#include "tests/support/tcp_rails.h"
#include "transports/tcp/connect/link_rails.h"

namespace seto::tcp {
namespace {

using support::FakeFabric;
using support::TcpRails;

// Keeps messages until the test delivers them.
class HeldChannel final : public ControlChannel {
 public:
  [[nodiscard]] const std::atomic<bool>& dead() const override { return dead_; }
  [[nodiscard]] std::string why() const override { return {}; }
  void ask_kernel(const std::function<void(int)>&) const override {}
  void at_site(std::string_view, std::uint64_t) override {}
  [[nodiscard]] std::unique_ptr<OnDeath> on_death(std::function<void()>) override { return nullptr; }
  void ask(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  void send_message(std::uint64_t, std::uint32_t, std::uint32_t, std::string_view bytes) override {
    EXPECT_LE(bytes.size(), kMessageLimit);
    held.emplace_back(bytes);
    ++sent;
    if (RailWord{static_cast<std::uint8_t>(bytes[0])} == RailWord::begin) ++begun;
  }
  std::deque<std::string> held;
  std::size_t sent = 0;
  int begun = 0;

 private:
  std::atomic<bool> dead_{false};
};

struct SetUpEnds {
  std::shared_ptr<AttemptRails> all_[2];
  std::shared_ptr<LinkRails> rails_[2];
  std::shared_ptr<HeldChannel> channels_[2];
};

// End 0 selects.
class RailSetUps : protected SetUpEnds, public TcpRails {
 protected:
  RailSetUps()
      : TcpRails(FakeFabric::Drive::by_hand, [this](std::size_t end, PipeMaker& maker) {
          AttemptRails::Setup setup;
          setup.attempt = 1;
          setup.own = static_cast<std::uint32_t>(end);
          setup.maker = &maker;
          setup.begin = Connect::all;
          all_[end] = std::make_shared<AttemptRails>(std::move(setup));
          rails_[end] = std::make_shared<LinkRails>(all_[end], static_cast<std::uint32_t>(1 - end),
                                                    end == 0 ? PipeMaker::Role::selects : PipeMaker::Role::follows);
          channels_[end] = std::make_shared<HeldChannel>();
          rails_[end]->use(channels_[end]);
          return rails_[end];
        }) {}

  void give(std::size_t to, std::string_view message) {
    const std::lock_guard lock(ends_[to].domain->lock());
    rails_[to]->receive(message);
  }
  void deliver_to(std::size_t to) {
    for (auto& held = channels_[1 - to]->held; !held.empty(); held.pop_front()) give(to, held.front());
  }
  void turn() {
    for (std::size_t end = 0; end < 2; ++end) {
      deliver_to(end);
      ends_[end].domain->pump();
      fabric_->run();
    }
  }
  [[nodiscard]] bool has_rail(std::size_t end, std::size_t rail) const { return ends_[end].link->rail(1 + rail) != nullptr; }
  [[nodiscard]] bool all_there() const { return has_rail(0, 0) && has_rail(0, 1) && has_rail(1, 0) && has_rail(1, 1); }
  template <class Condition>
  bool turn_until(const Condition& condition) {
    const Deadline until = Deadline::after_ms(60'000);
    for (; !until.passed(); sched_yield()) {
      turn();
      if (condition()) return true;
    }
    return false;
  }
  // Until end 0 has its first rail; what it says from then on waits.
  void finish_first_at_selecting_end() {
    while (!has_rail(0, 0)) {
      deliver_to(0);
      ends_[0].domain->pump();
      fabric_->run();
      if (has_rail(0, 0)) break;
      deliver_to(1);
      ends_[1].domain->pump();
      fabric_->run();
    }
  }
};

TEST_F(RailSetUps, FillAllPlaces) {
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
  const auto expected = queue(0, 1'000'000, 65'536);
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; }));
  EXPECT_TRUE(on_rails(0));
}

// The end that selects has a rail, writes a frame over it, and begins the next set-up before the other end has looked. That end
// finds the last message of the first set-up and the first message of the second one together. Its device has acknowledged the
// frame already: if the other end dropped the first rail, that frame would never be sent again.
TEST_F(RailSetUps, TheNextOneDoesNotEndTheOneThatHasSucceeded) {
  finish_first_at_selecting_end();
  const auto expected = queue(0, 1, 1);
  for (int pumps = 0; pumps < 3; ++pumps) ends_[0].domain->pump();
  fabric_->run();
  EXPECT_TRUE(on_rails(0)) << "the frame is on the rail";
  EXPECT_EQ(channels_[0]->held.size(), 2U) << "the end of the first set-up, and the begin of the second";
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; })) << "both ends wait for ever";
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
  EXPECT_EQ(fabric_->failed(), 0U) << "no rail was made twice";
}

// The message that ends the first set-up is lost, so this end cannot take the rail: it tells the peer, which uses it.
TEST_F(RailSetUps, APeerThatUsesARailThatIsGivenUpIsTold) {
  finish_first_at_selecting_end();
  const auto expected = queue(0, 1, 1);
  for (int pumps = 0; pumps < 3; ++pumps) ends_[0].domain->pump();
  fabric_->run();
  ASSERT_EQ(channels_[0]->held.size(), 2U);
  channels_[0]->held.pop_front();
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; })) << "both ends wait for ever";
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
}

// The message that tells of a lost rail is among those that have no room. The other end has not read its frame.
TEST_F(RailSetUps, MoreMessagesThanAreKeptCostTheRailsAndNoFrame) {
  for (std::size_t to = 0; to < 2; ++to) {
    ASSERT_TRUE(turn_until([&] { return all_there() && !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
    ends_[to].frames.whole.clear();
    const auto expected = queue(1 - to, 1, 1);
    ends_[1 - to].domain->pump();
    fabric_->run();
    for (const char* const device : {"a0", "a1", "b0", "b1"}) {
      if ((device[0] == 'a') != (to == 0)) continue;
      fabric_->set_port(device, 1, rdma::PortState::down);
      ends_[to].domain->prepare_to_sleep();  // takes the event before the completion
      fabric_->set_port(device, 1, rdma::PortState::active);
      ends_[to].domain->prepare_to_sleep();
    }
    ends_[to].domain->pump();
    const RailHead of_no_set_up{RailWord::message, 0, 1, 0, 99};
    const std::string_view useless(reinterpret_cast<const char*>(&of_no_set_up), sizeof of_no_set_up);
    for (std::size_t count = 0; count < RailInbox::kMostMessages; ++count) give(1 - to, useless);
    ASSERT_TRUE(turn_until([&] { return ends_[to].frames.whole == expected; })) << "end " << to;
  }
}

TEST_F(RailSetUps, MalformedMessagesEndNothingButRails) {
  for (int count = 0; count < 3'000; ++count) {
    std::string bytes(random_() % 40, '\0');
    for (char& each : bytes) each = static_cast<char>(random_() % (random_() % 2 == 0 ? 4 : 256));
    give(random_() % 2, bytes);
    if (random_() % 4 == 0) turn();
    EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
  }
  const auto expected = queue(0, 100'000, 65'536);
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; }));
}

// Messages are late by any time, rails break at any time, and both ends always come to the same.
TEST_F(RailSetUps, EachFrameComesOnceHoweverLateMessagesAre) {
  std::map<std::uint64_t, std::string> expected[2];
  for (std::uint64_t call = 0; call < support::repetitions(60, 15); ++call) {
    for (std::size_t end = 0; end < 2; ++end) expected[1 - end].merge(queue(end, 1 + random_() % 50'000, 4'096));
    for (std::size_t turns = random_() % 60; turns > 0; --turns) {
      const std::size_t to = random_() % 2;
      auto& held = channels_[1 - to]->held;
      for (std::size_t count = random_() % 4; count > 0 && !held.empty(); --count, held.pop_front()) give(to, held.front());
      for (std::size_t steps = random_() % 60; steps > 0; --steps) fabric_->step();
      ends_[random_() % 2].domain->pump();
    }
    if (random_() % 4 == 0) break_a_rail_or_none();
  }
  const auto whole = [&] { return ends_[0].frames.whole == expected[0] && ends_[1].frames.whole == expected[1]; };
  ASSERT_TRUE(turn_until(whole));
  EXPECT_TRUE(turn_until([&] { return all_there(); }));
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

class RailsOfLaterPorts : public RailSetUps {
 protected:
  void set_port(const std::string& device, rdma::PortState state) {
    fabric_->set_port(device, 1, state);
    take_events();
  }
  void take_events() {
    for (support::RailEnd& end : ends_) end.domain->prepare_to_sleep();
  }
  // Nothing is begun that cannot succeed.
  void expect_quiet() {
    for (int turns = 0; turns < 20; ++turns) turn();
    const std::size_t sent = channels_[0]->sent + channels_[1]->sent;
    const Deadline until = Deadline::after_ms(250);  // the first pauses are shorter
    while (!until.passed()) turn();
    EXPECT_EQ(channels_[0]->sent + channels_[1]->sent, sent);
  }
};

// At the end that selects, and at the end that follows.
TEST_F(RailsOfLaterPorts, FillTheirPlaces) {
  for (const char* const later : {"a1", "b1"}) {
    set_port(later, rdma::PortState::down);
    ASSERT_TRUE(turn_until([&] { return has_rail(0, 0) && has_rail(1, 0) && !has_rail(0, 1) && !has_rail(1, 1); })) << later;
    expect_quiet();
    set_port(later, rdma::PortState::active);
    ASSERT_TRUE(turn_until([&] { return all_there(); })) << later;
  }
}

TEST_F(RailsOfLaterPorts, ComeWithTheFirstPortThatIsUp) {
  for (const char* const device : {"a0", "a1", "b0", "b1"}) set_port(device, rdma::PortState::down);
  expect_quiet();
  EXPECT_EQ(channels_[0]->sent + channels_[1]->sent, 0U);
  set_port("a1", rdma::PortState::active);
  turn();
  EXPECT_GT(channels_[0]->sent, 0U) << "the other end has not said that it has no port";
  expect_quiet();
  const auto expected = queue(0, 100'000, 65'536);
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; })) << "over the socket";
  set_port("b1", rdma::PortState::active);
  ASSERT_TRUE(turn_until([&] { return ends_[0].link->has_live_rail() && ends_[1].link->has_live_rail(); }));
  for (const char* const device : {"a0", "b0"}) set_port(device, rdma::PortState::active);
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
}

// The port is up long before it has an address.
TEST_F(RailsOfLaterPorts, ComeWithTheirAddress) {
  for (const char* const device : {"a1", "b1"}) {
    fabric_->set_address(device, {});
    set_port(device, rdma::PortState::down);
    set_port(device, rdma::PortState::active);
    ASSERT_TRUE(turn_until([&] { return has_rail(0, 0) && has_rail(1, 0) && !has_rail(0, 1) && !has_rail(1, 1); }));
    expect_quiet();
    fabric_->set_address(device, device[0] == 'a' ? "10.1.0.1" : "10.1.0.2");
    take_events();
    ASSERT_TRUE(turn_until([&] { return all_there(); })) << device;
  }
}

// Four tries have failed, and the pause before the next one is 1.6 s. An event of the port ends it.
TEST_F(RailsOfLaterPorts, AreTriedSoonAfterAChange) {
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
  set_port("a1", rdma::PortState::down);
  ASSERT_TRUE(turn_until([&] { return !has_rail(0, 1) && !has_rail(1, 1); }));
  constexpr int kCandidates = 4;  // pairs of GIDs of one pair of ports
  for (int failures = 0; failures < 4 * kCandidates; ++failures) fabric_->fail(rdma::VerbsCall::create_queue_pair, ENOMEM);
  const auto begun = [&, before = channels_[0]->begun] { return channels_[0]->begun - before; };
  set_port("a1", rdma::PortState::active);
  ASSERT_TRUE(turn_until([&] { return begun() == 4 && !rails_[0]->busy(); }));
  set_port("a1", rdma::PortState::active);
  const Deadline soon = Deadline::after_ms(150);
  while (!soon.passed()) turn();
  turn();
  EXPECT_EQ(begun(), 5);
  EXPECT_TRUE(turn_until([&] { return all_there(); }));
}

// The word of the end that follows about its ports may be among the messages that had no room.
TEST_F(RailsOfLaterPorts, AreTriedWhenMessagesWereLost) {
  set_port("b1", rdma::PortState::down);
  ASSERT_TRUE(turn_until([&] { return has_rail(0, 0) && has_rail(1, 0) && !has_rail(0, 1) && !has_rail(1, 1); }));
  expect_quiet();
  const RailHead of_no_set_up{RailWord::message, 0, 1, 0, 99};
  const std::string_view useless(reinterpret_cast<const char*>(&of_no_set_up), sizeof of_no_set_up);
  for (std::size_t count = 0; count < RailInbox::kMostMessages; ++count) give(0, useless);
  set_port("b1", rdma::PortState::active);
  ends_[1].domain->pump();
  ASSERT_FALSE(channels_[1]->held.empty());
  deliver_to(0);
  ASSERT_TRUE(turn_until([&] { return all_there(); }));
}

// A port that is farther from the memory than others carries data while no nearer one can, and no longer.
TEST_F(RailsOfLaterPorts, AreOnFarPortsOnlyWhileNoNearOneIsUp) {
  for (const char* const device : {"a1", "b1"}) {
    fabric_->set_distance(device, 21);
    set_port(device, rdma::PortState::active);  // its facts are asked for again
  }
  const auto only = [&](const std::string& device) {
    const std::vector<std::string> all = ways();
    return all.size() == 2 && all[1].starts_with("RDMA " + device) && has_rail(1, 0) != has_rail(1, 1);
  };
  ASSERT_TRUE(turn_until([&] { return only("a0"); }));
  expect_quiet();
  EXPECT_TRUE(only("a0"));
  set_port("a0", rdma::PortState::down);
  ASSERT_TRUE(turn_until([&] { return only("a1"); }));
  const auto expected = queue(0, 100'000, 65'536);
  ASSERT_TRUE(turn_until([&] { return ends_[1].frames.whole == expected; }));
  EXPECT_TRUE(on_rails(0));
  set_port("a0", rdma::PortState::active);
  ASSERT_TRUE(turn_until([&] { return only("a0"); }));
  expect_quiet();
  EXPECT_TRUE(only("a0"));
}

}  // namespace
}  // namespace seto::tcp

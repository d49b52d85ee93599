// Control messages that processes pass on, over real sockets.

#include "src/control/channel/control_overlay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/control/channel/control_channel_hub.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_connectors.h"

namespace seto {
namespace {

using testing::eventually;
using testing::key_of_test;
using testing::later;
using testing::Pairing;
using testing::request_to;
using testing::TestConnector;

constexpr AttemptId kAttempt = 11;
constexpr std::uint64_t kKey = 7;
// Members at distances 1, 2 and 4 have channels: 3 and 5 steps away there is none.
constexpr OverlayMember kMembers = 8;
constexpr OverlayMember kFar = 3;
constexpr OverlayMember kNobody = kMembers;

int socket_of(const ControlChannel& channel) {
  int socket = -1;
  channel.ask_kernel([&](int descriptor) { socket = descriptor; });
  return socket;
}

// A process with its part of the overlay and what its handler received.
class Station final {
 public:
  Station() : channels(ControlChannels::create(*connector.control, *connector.connector, {0, 300}).value()) {}

  // All but `missing`, of which nothing is heard.
  void join(std::vector<std::unique_ptr<Station>>& all, OverlayMember own, OverlayMember missing) {
    ControlOverlaySetup setup{kAttempt, key_of_test(), own, {}};
    for (OverlayMember one = 0; one < all.size(); ++one)
      setup.members.push_back({all[one]->connector.connector->self().process, {one, 0}});
    handler = channels->handlers().add({kKey, own}, {[own] { return "the answer of " + std::to_string(own); },
                                                     [this](std::uint32_t from, std::string_view bytes) {
                                                       const std::lock_guard lock(mutex);
                                                       heard.push_back(std::to_string(from) + ": " + std::string(bytes));
                                                     }});
    overlay = channels->join_overlay(setup).value();
    for (const OverlayMember peer : overlay->peers()) {
      if (peer == missing) continue;
      auto channel = channels->connect(request_to(all[peer]->connector, {own + 1, peer + 1, kAttempt}));
      ASSERT_TRUE(channel.ok()) << channel.status().text();
      overlay->attach(peer, channel.value());
      edges.emplace(peer, channel.value());
    }
  }
  [[nodiscard]] std::vector<std::string> all_heard() {
    const std::lock_guard lock(mutex);
    return heard;
  }

  TestConnector connector;
  std::unique_ptr<ControlChannels> channels;
  std::map<OverlayMember, std::shared_ptr<ControlChannel>> edges;  // as other communicators hold them
  Admission admitted = connector.connector->admit(key_of_test());
  std::mutex mutex;
  std::vector<std::string> heard;
  MessageHandlers::Registration handler;
  std::shared_ptr<ControlOverlay> overlay;
};

class ControlOverlays : public ::testing::Test {
 protected:
  void SetUp() override { join(kNobody); }
  void join(OverlayMember missing) {
    for (OverlayMember own = 0; own < kMembers; ++own) all_.push_back(std::make_unique<Station>());
    std::vector<std::future<void>> joining;
    for (OverlayMember own = 0; own < kMembers; ++own)
      if (own != missing)
        joining.push_back(std::async(std::launch::async, [this, own, missing] { all_[own]->join(all_, own, missing); }));
    for (auto& one : joining) one.get();
  }

  std::vector<std::unique_ptr<Station>> all_;
};

TEST_F(ControlOverlays, EveryTwoMembersTalk) {
  ASSERT_FALSE(HasFailure());
  for (OverlayMember from = 0; from < kMembers; ++from)
    for (OverlayMember to = 0; to < kMembers; ++to)
      if (from != to) {
        const auto channel = all_[from]->overlay->channel_to(to);
        for (int number = 0; number < 40; ++number) channel->send_message(kKey, to, from, std::to_string(number));
      }
  for (const auto& one : all_) {
    EXPECT_TRUE(eventually([&] { return one->all_heard().size() == 40 * (kMembers - 1); }));
    std::vector<int> next(kMembers);
    for (const std::string& message : one->all_heard())
      EXPECT_EQ(std::stoi(message.substr(3)), next[static_cast<std::size_t>(message[0] - '0')]++) << message;
  }
  all_[0]->heard.clear();
  all_[0]->overlay->channel_to(kFar)->ask(kKey, kFar, 0);
  ASSERT_TRUE(eventually([&] { return all_[0]->all_heard().size() == 1; }));
  EXPECT_EQ(all_[0]->all_heard()[0], "3: the answer of 3");
  EXPECT_LT(socket_of(*all_[0]->overlay->channel_to(kFar)), 0) << "its messages were passed on";
}

// Members that have left pass on what others say, also the last words of those that leave after them.
TEST_F(ControlOverlays, MembersThatLeftPassOnAndAreNotLost) {
  ASSERT_FALSE(HasFailure());
  for (OverlayMember own = 0; own < kMembers; ++own)
    if (own != 0 && own != kFar) all_[own]->overlay.reset();
  const auto channel = all_[kFar]->overlay->channel_to(0);
  for (int number = 0; number < 10; ++number) all_[0]->overlay->channel_to(kFar)->send_message(kKey, kFar, 0, "a word");
  all_[0]->overlay.reset();
  EXPECT_TRUE(eventually([&] { return all_[kFar]->all_heard().size() == 10; }));
  EXPECT_FALSE(channel->dead());
}

// A process ends 2 s after it left, whatever others have heard: it says then that it has left.
TEST_F(ControlOverlays, OneThatEndsBeforeItsWordsAreHeardIsNotLost) {
  ASSERT_FALSE(HasFailure());
  std::unique_lock hears_nothing(all_[kFar]->mutex);
  all_[0]->overlay->channel_to(kFar)->send_message(kKey, kFar, 0, "a word");
  all_[0]->overlay.reset();
  static_cast<ControlChannelHub&>(*all_[0]->channels).finish_overlays(Deadline::after_ms(50));
  std::atomic<std::size_t> ends{0};
  std::vector<std::unique_ptr<ControlChannel::OnDeath>> on_end;
  for (const auto& [peer, edge] : all_[0]->edges) {
    on_end.push_back(all_[peer]->edges.at(0)->on_death([&] { ++ends; }));  // runs after the overlay has heard of it
    shutdown(socket_of(*edge), SHUT_RDWR);
  }
  hears_nothing.unlock();
  EXPECT_TRUE(eventually([&] { return ends == on_end.size(); }));
  for (const auto& [peer, edge] : all_[0]->edges) {
    EXPECT_FALSE(all_[peer]->overlay->channel_to(0)->dead()) << peer << ": " << all_[peer]->overlay->channel_to(0)->why();
  }
}

// The init fails where members have no channel to the missing one. Members 0 and 2 have all that they need.
class ControlOverlaysOfAFailedInit : public ControlOverlays {
 protected:
  static constexpr OverlayMember kMissing = 5;
  void SetUp() override { join(kMissing); }
};

// Other communicators keep the channels, so nothing but the overlay tells that it has ended.
TEST_F(ControlOverlaysOfAFailedInit, AMemberThatEndsItsPartIsNotPassedThrough) {
  ASSERT_FALSE(HasFailure());
  const auto channel = all_[0]->overlay->channel_to(kFar);
  for (int number = 0; number < 5; ++number) channel->send_message(kKey, kFar, 0, "a word");
  all_[1]->overlay.reset();
  for (int number = 0; number < 5; ++number) channel->send_message(kKey, kFar, 0, "a word");
  EXPECT_TRUE(eventually([&] { return all_[kFar]->all_heard().size() == 10; })) << all_[kFar]->all_heard().size();
  EXPECT_FALSE(channel->dead());
}

TEST_F(ControlOverlaysOfAFailedInit, TheOverlayEndsForAll) {
  ASSERT_FALSE(HasFailure());
  std::vector<std::weak_ptr<ControlChannel>> channels;
  for (const auto& one : all_) {
    for (const auto& [peer, edge] : one->edges) channels.push_back(edge);
    one->edges.clear();
    one->overlay.reset();
  }
  for (const auto& channel : channels) EXPECT_TRUE(eventually([&] { return channel.expired(); }));
}

// Its hub closes all its channels.
TEST_F(ControlOverlays, OneThatEndsIsLostForAllAndNoOtherIs) {
  ASSERT_FALSE(HasFailure());
  constexpr OverlayMember kEnds = 2;
  std::vector<std::shared_ptr<ControlChannel>> to_it;
  for (OverlayMember own = 0; own < kMembers; ++own)
    if (own != kEnds) to_it.push_back(all_[own]->overlay->channel_to(kEnds));
  std::atomic<int> called{0};
  const auto on_death = to_it[0]->on_death([&] { ++called; });
  for (const OverlayMember peer : all_[kEnds]->overlay->peers())  // as if its process had ended
    shutdown(socket_of(*all_[kEnds]->overlay->channel_to(peer)), SHUT_RDWR);
  for (const auto& channel : to_it) EXPECT_TRUE(eventually([&] { return channel->dead().load(); }));
  EXPECT_TRUE(eventually([&] { return called.load() == 1; }));
  // While its sockets are shut down one by one, it may tell over the others that it has lost its peers.
  const std::string why(to_it[0]->why());
  EXPECT_TRUE(why == "its process has ended" || why.find("all processes that lead to it are lost") != std::string::npos) << why;
  const auto late = to_it[0]->on_death([&] { ++called; });
  EXPECT_TRUE(eventually([&] { return called.load() == 2; })) << "also one that comes later";
  for (OverlayMember own = 0; own < kMembers; ++own)
    for (OverlayMember other = 0; other < kMembers; ++other)
      if (own != kEnds && other != kEnds && own != other) {
        EXPECT_FALSE(all_[own]->overlay->channel_to(other)->dead()) << own << " to " << other;
      }
  all_[0]->overlay->channel_to(kFar)->send_message(kKey, kFar, 0, "a word");
  EXPECT_TRUE(eventually([&] { return all_[kFar]->all_heard().size() == 1; }));
}

}  // namespace
}  // namespace seto

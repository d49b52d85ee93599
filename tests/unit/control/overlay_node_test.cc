// Messages that members of an overlay pass on, in random orders of events: deaths, lost edges, members that leave.

#include "src/control/overlay/overlay_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

constexpr std::size_t kNoLimit = ~std::size_t{0};

// All members of an overlay. Each direction of an edge is a queue in order. A member may die after any single send, and what it
// had sent may be lost from any frame on.
class Members final {
 public:
  Members(std::vector<OverlayPlace> places, std::uint64_t seed) : random_(seed), graph_(std::move(places)) {
    for (OverlayMember own = 0; own < graph_.members(); ++own) all_.push_back(std::make_unique<Member>(*this, own));
    for (OverlayMember own = 0; own < graph_.members(); ++own)
      for (const OverlayMember one : graph_.peers(own)) all_[own]->node.attach(one);
  }

  [[nodiscard]] OverlayMember count() const { return graph_.members(); }
  [[nodiscard]] const OverlayGraph& graph() const { return graph_; }
  OverlayMember pick(OverlayMember below) { return std::uniform_int_distribution<OverlayMember>(0, below - 1)(random_); }
  [[nodiscard]] bool alive(OverlayMember own) const { return all_[own]->state == State::member; }

  void say(OverlayMember from, OverlayMember to) {
    Member& own = *all_[from];
    if (!alive(from) || from == to || own.lost.count(to) > 0 || own.node.routes().left().count(to) > 0) return;
    const std::uint64_t number = ++own.said[to];
    const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
    ASSERT_TRUE(own.node.send(to, {7, number, to, from, bytes}, kNoLimit));
  }

  // It sends nothing after `sends` more frames, and its peers will notice.
  void kill(OverlayMember own, OverlayMember sends) { all_[own]->sends_left = sends; }

  // Both ends give each other up, at different times.
  void cut(OverlayMember one, OverlayMember other) {
    close({one, other});
    close({other, one});
  }

  // `may_end`: its process may end at any time after that.
  void leave(OverlayMember own, bool may_end = true) {
    all_[own]->node.prepare_to_leave();
    all_[own]->state = State::leaving;
    all_[own]->may_end = may_end;
  }
  void end(OverlayMember own) { end(*all_[own]); }

  // Does one thing that is due, in a random order. Returns false if nothing is.
  bool step() {
    for (const auto& member : all_) {
      if (member->state == State::leaving && member->node.settled()) part(*member);
      if (member->state == State::lingers && member->may_end && (pick(200) == 0 || !member->node.is_needed())) end(*member);
    }
    std::vector<Edge> due;
    for (const auto& [edge, queue] : queues_)
      if (!queue.empty()) due.push_back(edge);
    if (due.empty()) return false;
    const Edge edge = due[pick(static_cast<OverlayMember>(due.size()))];
    std::deque<Frame>& queue = queues_[edge];
    const Frame frame = std::move(queue.front());
    queue.pop_front();
    hear(edge, frame);
    return true;
  }
  void settle() {
    while (step() && !::testing::Test::HasFatalFailure()) {
    }
  }

  // Every letter between members that live, and are not lost to each other, has arrived if some path joins them.
  void check_letters() {
    for (OverlayMember from = 0; from < count(); ++from)
      for (OverlayMember to = 0; to < count(); ++to) {
        if (!alive(from) || !alive(to) || from == to) continue;
        Member& sender = *all_[from];
        if (sender.lost.count(to) > 0 || all_[to]->lost.count(from) > 0) continue;
        if (!OverlayRoutes(sender.node.routes()).path_to(to)) continue;
        ASSERT_EQ(all_[to]->heard[from], sender.said[to]) << from << " to " << to;
      }
  }
  [[nodiscard]] std::uint64_t said(OverlayMember from, OverlayMember to) { return all_[from]->said[to]; }
  [[nodiscard]] std::uint64_t heard(OverlayMember to, OverlayMember from) { return all_[to]->heard[from]; }
  [[nodiscard]] const std::map<OverlayMember, std::string>& lost(OverlayMember own) const { return all_[own]->lost; }
  [[nodiscard]] const OverlayNode& node(OverlayMember own) const { return all_[own]->node; }

  // The living that a member reaches over the living.
  [[nodiscard]] std::vector<bool> reached(OverlayMember own) const {
    std::vector<bool> seen(count());
    std::deque<OverlayMember> next{own};
    for (seen[own] = true; !next.empty(); next.pop_front())
      for (const OverlayMember one : graph_.peers(next.front()))
        if (!seen[one] && alive(one)) {
          seen[one] = true;
          next.push_back(one);
        }
    return seen;
  }

 private:
  using Edge = std::pair<OverlayMember, OverlayMember>;  // from, to
  struct Frame {
    OverlayFrameKind kind{};
    OverlayMember from = 0;
    OverlayMember to = 0;
    std::string bytes;
    bool end = false;  // of the channel
  };
  enum class State : std::uint8_t { member, leaving, lingers, gone, dead };

  struct Member final : OverlayNode::Output {
    Member(Members& members, OverlayMember number) : all(members), own(number), node(members.graph_, number, *this) {}
    void send(OverlayMember peer, const OverlayFrame& frame) override { all.transmit(*this, peer, frame); }

    Members& all;
    const OverlayMember own;
    OverlayNode node;
    State state = State::member;
    bool may_end = true;
    OverlayMember sends_left = ~OverlayMember{0};
    std::map<OverlayMember, std::uint64_t> said;
    std::map<OverlayMember, std::uint64_t> heard;
    std::map<OverlayMember, std::string> lost;
  };

  void transmit(Member& from, OverlayMember to, const OverlayFrame& frame) {
    if (from.state == State::dead) return;
    const Edge edge{from.own, to};
    if (closed_.count(edge) == 0) queues_[edge].push_back({frame.kind, frame.from, frame.to, std::string(frame.bytes), false});
    if (from.sends_left-- == 0) {
      from.state = State::dead;
      for (const OverlayMember one : graph_.peers(from.own)) {
        close({from.own, one});
        queues_[{one, from.own}].clear();
      }
    }
  }

  // Frames from some point on are lost, and then the channel ends.
  void close(const Edge& edge) {
    if (!closed_.insert(edge).second) return;
    std::deque<Frame>& queue = queues_[edge];
    queue.resize(pick(static_cast<OverlayMember>(queue.size() + 1)));
    queue.push_back({{}, 0, 0, {}, true});
  }

  // Half of those that leave pass on for a while.
  void part(Member& member) {
    member.node.leave();
    member.state = State::lingers;
    if (member.may_end && pick(2) == 0) end(member);
  }

  void end(Member& member) {
    member.state = State::gone;
    for (const OverlayMember one : graph_.peers(member.own)) {
      if (closed_.insert({member.own, one}).second) queues_[{member.own, one}].push_back({{}, 0, 0, {}, true});
    }
  }

  void hear(const Edge& edge, const Frame& frame) {
    Member& own = *all_[edge.second];
    if (own.state == State::dead || own.state == State::gone) return;
    OverlayNode::Events events;
    if (frame.end) {
      own.node.lose(edge.first, "member " + std::to_string(edge.first) + " has ended", events);
    } else {
      const Status taken = own.node.receive(edge.first, {frame.kind, frame.from, frame.to, frame.bytes}, events);
      ASSERT_TRUE(taken.ok()) << taken.text();
    }
    for (const auto& [from, letter] : events.deliveries) {
      ASSERT_EQ(letter.kind, 7);
      ASSERT_EQ(letter.from, from);
      ASSERT_EQ(letter.to, own.own);
      ASSERT_EQ(letter.key, ++own.heard[from]) << "of " << from << ": lost, twice or in another order";
      ASSERT_EQ(std::memcmp(letter.bytes.data(), &letter.key, sizeof letter.key), 0);
    }
    for (const auto& [member, why] : events.losses) ASSERT_TRUE(own.lost.emplace(member, why).second) << "lost twice";
  }

  std::mt19937_64 random_;
  const OverlayGraph graph_;
  std::map<Edge, std::deque<Frame>> queues_;
  std::set<Edge> closed_;
  std::vector<std::unique_ptr<Member>> all_;
};

// Two hosts or more, of one or two processes, at up to three sites.
std::vector<OverlayPlace> places_of(std::mt19937_64& random) {
  std::vector<OverlayPlace> places;
  const auto members = static_cast<std::uint32_t>(3 + random() % 30);
  const auto sites = static_cast<std::uint32_t>(1 + random() % 3);
  const auto each = static_cast<std::uint32_t>(1 + random() % 2);
  for (std::uint32_t member = 0; member < members; ++member) places.push_back({member / each, member / each % sites});
  return places;
}

// Says something here and there, and steps in between.
void chat(Members& members, int letters) {
  for (int said = 0; said < letters && !::testing::Test::HasFatalFailure();) {
    if (members.pick(6) == 0) {
      members.say(members.pick(members.count()), members.pick(members.count()));
      ++said;
    } else {
      members.step();
    }
  }
}

class Overlay : public ::testing::Test {
 protected:
  // Runs the body for many random overlays.
  void each_round(int rounds, const std::function<void(Members&)>& body) {
    const std::uint64_t seed = ::seto::testing::chosen_seed();
    for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(round));
      Members members(places_of(random), random());
      body(members);
    }
  }
};

TEST_F(Overlay, DeliversInOrderWhereNothingIsLost) {
  each_round(60, [](Members& members) {
    chat(members, 400);
    members.settle();
    members.check_letters();
    for (OverlayMember own = 0; own < members.count(); ++own) EXPECT_TRUE(members.lost(own).empty());
  });
}

// The living hear the same whatever the dead passed on. All learn all deaths, and no member is lost without one.
TEST_F(Overlay, DeliversInOrderAndTellsDeathsWhileMembersDie) {
  each_round(150, [](Members& members) {
    for (OverlayMember deaths = members.pick(6); deaths > 0; --deaths)
      members.kill(members.pick(members.count()), members.pick(300));
    chat(members, 400);
    members.settle();
    members.check_letters();
    for (OverlayMember own = 0; own < members.count(); ++own) {
      if (!members.alive(own)) continue;
      const std::vector<bool> reached = members.reached(own);
      for (OverlayMember other = 0; other < members.count(); ++other)
        ASSERT_EQ(members.lost(own).count(other) > 0, !reached[other]) << "member " << own << " of " << other;
    }
  });
}

TEST_F(Overlay, DeliversInOrderWhileEdgesAreLost) {
  each_round(150, [](Members& members) {
    for (OverlayMember cuts = members.pick(8); cuts > 0 && !::testing::Test::HasFatalFailure(); --cuts) {
      chat(members, 50);
      const OverlayMember one = members.pick(members.count());
      const std::vector<OverlayMember>& peers = members.graph().peers(one);
      if (peers.empty()) continue;
      members.cut(one, peers[members.pick(static_cast<OverlayMember>(peers.size()))]);
    }
    chat(members, 50);
    members.settle();
    members.check_letters();
  });
}

// Each says its last words, and the next one may be the one that they pass through.
TEST_F(Overlay, TheLastWordsOfMembersThatLeaveArrive) {
  each_round(150, [](Members& members) {
    std::vector<std::vector<std::uint64_t>> expected(members.count(), std::vector<std::uint64_t>(members.count()));
    std::vector<bool> leaves(members.count());
    for (OverlayMember leaver = members.pick(members.count()); leaver > 0; --leaver) {
      chat(members, 20);
      const OverlayMember own = members.pick(members.count());
      if (leaves[own]) continue;
      leaves[own] = true;
      for (OverlayMember to = 0; to < members.count(); ++to) members.say(own, to);
      for (OverlayMember to = 0; to < members.count(); ++to)
        if (OverlayRoutes(members.node(own).routes()).path_to(to)) expected[own][to] = members.said(own, to);
      members.leave(own);
    }
    chat(members, 20);
    members.settle();
    members.check_letters();
    for (OverlayMember own = 0; own < members.count(); ++own) {
      EXPECT_TRUE(members.lost(own).empty()) << own << ": members that leave lose no member";
      if (!leaves[own]) continue;
      EXPECT_FALSE(members.alive(own));
      const std::vector<bool> reached = members.reached(own);
      for (OverlayMember to = 0; to < members.count(); ++to) {
        if (!members.alive(to) || !reached[to]) continue;
        EXPECT_GE(members.heard(to, own), expected[own][to]) << own << " to " << to;
      }
    }
  });
}

// A member that has left passes messages on, so the others reach those of which it alone has an edge.
TEST_F(Overlay, NoMemberIsLostThatOneWhichHasLeftStillLeadsTo) {
  Members members({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 0}, {9, 0}, {10, 0}, {11, 0}}, 1);
  constexpr OverlayMember kCut = 0;
  constexpr OverlayMember kLeft = 1;
  constexpr OverlayMember kFar = 3;
  ASSERT_FALSE(members.graph().adjacent(kCut, kFar));
  members.leave(kLeft, false);
  members.settle();
  for (const OverlayMember one : members.graph().peers(kCut))
    if (one != kLeft) members.cut(kCut, one);
  members.settle();
  EXPECT_TRUE(members.lost(kFar).empty());
  members.say(kFar, kCut);
  members.settle();
  EXPECT_EQ(members.heard(kCut, kFar), 1U);
  members.end(kLeft);
  members.settle();
  EXPECT_EQ(members.lost(kFar).count(kCut), 1U);
}

TEST_F(Overlay, MembersDieAndLeaveAtOnce) {
  each_round(150, [](Members& members) {
    for (OverlayMember deaths = members.pick(4); deaths > 0; --deaths)
      members.kill(members.pick(members.count()), members.pick(300));
    for (OverlayMember leaver = members.pick(1 + members.count() / 2); leaver > 0; --leaver) {
      chat(members, 30);
      const OverlayMember own = members.pick(members.count());
      if (members.alive(own)) members.leave(own);
    }
    chat(members, 100);
    members.settle();
    members.check_letters();
  });
}

// Nothing is kept for ever: every sixteenth letter is acknowledged, and those that leave ask.
TEST_F(Overlay, KeepsLittleThatWasHeard) {
  Members members({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}}, 1);
  for (int count = 0; count < 1000; ++count) {
    members.say(0, 3);
    members.settle();
  }
  EXPECT_EQ(members.heard(3, 0), 1000U);
  EXPECT_FALSE(members.node(0).settled()) << "the last few are not acknowledged";
  members.leave(0);
  members.settle();
  EXPECT_FALSE(members.alive(0));
}

}  // namespace
}  // namespace seto

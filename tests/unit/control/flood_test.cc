// Messages to all members over an overlay: who is connected, and what every member hears in random orders of events.

#include "src/control/overlay/flood.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

using Member = std::uint32_t;
using Counts = std::vector<std::uint64_t>;  // by origin: how many of its messages

TEST(Overlay, BothEndsOfAPairNameEachOther) {
  for (Member members = 1; members <= 70; ++members)
    for (Member own = 0; own < members; ++own)
      for (const Member peer : overlay_neighbours(own, members)) {
        ASSERT_NE(peer, own);
        const std::vector<Member> back = overlay_neighbours(peer, members);
        ASSERT_TRUE(std::binary_search(back.begin(), back.end(), own)) << own << " and " << peer << " of " << members;
      }
}

TEST(Overlay, FewNeighboursReachAllMembersInFewSteps) {
  for (const Member members : {1U, 2U, 3U, 5U, 64U, 100U, 128U, 1'000U}) {
    Member bits = 0;
    while ((1U << bits) < members) ++bits;
    EXPECT_LE(overlay_neighbours(0, members).size(), 2 * bits) << members;
    std::vector<Member> steps(members, members);
    std::deque<Member> reached{0};
    steps[0] = 0;
    for (; !reached.empty(); reached.pop_front())
      for (const Member peer : overlay_neighbours(reached.front(), members)) {
        if (steps[peer] != members) continue;
        steps[peer] = steps[reached.front()] + 1;
        reached.push_back(peer);
      }
    EXPECT_LE(*std::max_element(steps.begin(), steps.end()), bits) << members;
  }
  EXPECT_EQ(overlay_neighbours(5, 128).size(), 13U);
}

// How many of the members that are not dead one of them reaches over the others, itself included.
std::size_t reached_without(const std::vector<Member>& dead, Member members) {
  std::vector<bool> seen(members);
  for (const Member one : dead) seen[one] = true;
  const auto first = static_cast<Member>(std::find(seen.begin(), seen.end(), false) - seen.begin());
  std::deque<Member> reached{first};
  seen[first] = true;
  std::size_t count = 0;
  for (; !reached.empty(); reached.pop_front(), ++count)
    for (const Member peer : overlay_neighbours(reached.front(), members))
      if (!seen[peer]) {
        seen[peer] = true;
        reached.push_back(peer);
      }
  return count;
}

TEST(Overlay, AnyThreeDeathsLeaveTheOthersConnected) {
  constexpr Member kMembers = 16;
  for (Member a = 0; a < kMembers; ++a)
    for (Member b = a + 1; b < kMembers; ++b)
      for (Member c = b + 1; c < kMembers; ++c)
        ASSERT_EQ(reached_without({a, b, c}, kMembers), kMembers - 3) << a << ", " << b << ", " << c;
}

// Members with a channel in order for each direction of a pair. A member may die after any single send, also between those of one
// message. Each message carries how many of each origin its origin had heard when it said it.
class Members final {
 public:
  Members(Member members, std::uint64_t seed) : random_(seed), alive_(members, true), heard_(members, Counts(members)) {
    for (Member own = 0; own < members; ++own) floods_.emplace_back(own, members);
  }

  void say(Member own) {
    ++heard_[own][own];
    const Counts& known = heard_[own];
    const std::string_view bytes(reinterpret_cast<const char*>(known.data()), known.size() * sizeof known[0]);
    send(own, floods_[own].say(bytes), own);
  }

  // Returns false if nothing is under way.
  bool step() {
    if (channels_.empty()) return false;
    auto channel = std::next(channels_.begin(), static_cast<std::ptrdiff_t>(pick(channels_.size())));
    const auto [from, to] = channel->first;
    const std::string message = std::move(channel->second.front());
    channel->second.pop_front();
    if (channel->second.empty()) channels_.erase(channel);
    if (alive_[to]) hear(to, from, message);
    return true;
  }

  void let_die_later(Member own) { sends_left_[own] = pick(8); }
  std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

  // The living have the same, and all that the living have said.
  void check_all_heard() const {
    const Counts* first = nullptr;
    for (Member own = 0; own < alive_.size(); ++own) {
      if (!alive_[own]) continue;
      if (first == nullptr) first = &heard_[own];
      ASSERT_EQ(heard_[own], *first) << "member " << own;
      for (Member origin = 0; origin < alive_.size(); ++origin)
        if (alive_[origin]) {
          ASSERT_EQ(heard_[own][origin], heard_[origin][origin]);
        }
    }
  }

  [[nodiscard]] bool alive(Member own) const { return alive_[own]; }

 private:
  void hear(Member own, Member from, const std::string& message) {
    Result<Flood::Heard> heard = floods_[own].hear(message);
    ASSERT_TRUE(heard.ok()) << heard.status().text();
    if (!heard->first) return;
    Counts known(alive_.size());
    ASSERT_EQ(heard->bytes.size(), known.size() * sizeof known[0]);
    std::memcpy(known.data(), heard->bytes.data(), heard->bytes.size());
    ASSERT_EQ(heard_[own][heard->origin] + 1, known[heard->origin]) << "not the next message of its origin";
    ++heard_[own][heard->origin];
    for (Member origin = 0; origin < known.size(); ++origin)
      ASSERT_GE(heard_[own][origin], known[origin]) << "heard before what its origin had heard";
    send(own, message, from);
  }

  void send(Member own, const std::string& message, Member but) {
    for (const Member peer : floods_[own].neighbours()) {
      if (peer == but || !alive_[own]) continue;
      channels_[{own, peer}].push_back(message);
      if (const auto left = sends_left_.find(own); left != sends_left_.end() && left->second-- == 0) alive_[own] = false;
    }
  }

  std::mt19937_64 random_;
  std::vector<bool> alive_;
  std::vector<Counts> heard_;  // by member
  std::vector<Flood> floods_;
  std::map<std::pair<Member, Member>, std::deque<std::string>> channels_;  // from, to: those with messages
  std::map<Member, std::size_t> sends_left_;                                // of those that die
};

TEST(Flood, AllHearAllInOrderOfCause) {
  const std::uint64_t seed = ::seto::testing::chosen_seed();
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const Member count = 2 + static_cast<Member>(round % 21);
    Members members(count, seed + round);
    for (int said = 0; said < 30;) {
      if (members.pick(20) == 0) {
        members.say(static_cast<Member>(members.pick(count)));
        ++said;
      } else {
        members.step();
      }
    }
    while (members.step() && !HasFatalFailure()) {}
    members.check_all_heard();
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Flood, TheLivingHearTheSameWhenMembersDieInTheMiddleOfAMessage) {
  const std::uint64_t seed = ::seto::testing::chosen_seed();
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    Members members(16, seed + round);
    for (int death = 0; death < 3; ++death) members.let_die_later(static_cast<Member>(members.pick(16)));
    for (int said = 0; said < 30;) {
      const auto own = static_cast<Member>(members.pick(16));
      if (members.pick(20) == 0 && members.alive(own)) {
        members.say(own);
        ++said;
      } else {
        members.step();
      }
    }
    while (members.step() && !HasFatalFailure()) {}
    members.check_all_heard();
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Flood, RefusesWhatNoMemberSays) {
  Flood flood(0, 3);
  Flood other(1, 3);
  const std::string first = other.say("one");
  const std::string second = other.say("two");
  EXPECT_FALSE(flood.hear(second).ok()) << "the first is missing";
  ASSERT_TRUE(flood.hear(first).ok());
  Result<Flood::Heard> heard = flood.hear(second);
  ASSERT_TRUE(heard.ok());
  EXPECT_TRUE(heard->first);
  EXPECT_EQ(heard->origin, 1U);
  EXPECT_EQ(heard->bytes, "two");
  Result<Flood::Heard> again = flood.hear(first);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->first);
  EXPECT_FALSE(flood.hear(std::string_view(first).substr(0, Flood::kHeadSize - 1)).ok());
  EXPECT_FALSE(flood.hear(Flood(4, 5).say("from beyond the members")).ok());
  EXPECT_FALSE(flood.hear(Flood(0, 3).say("in the name of the hearer")).ok());
  EXPECT_FALSE(flood.hear(std::string(Flood::kHeadSize, '\0')).ok());
}

}  // namespace
}  // namespace seto

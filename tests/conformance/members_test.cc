// PeerStatus over every transport: notes, progress, fates; and members that sleep are woken.

#include <random>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kSeed = 21;

using Members = EveryTransport;

Note note_for(std::uint64_t operation, std::uint32_t member) {
  Note note{operation, static_cast<std::uint32_t>(mixed(operation + member)), static_cast<std::uint32_t>(operation % 3), {}};
  for (std::size_t i = 0; i < std::size(note.words); ++i) note.words[i] = mixed(note.digest + i);
  return note;
}

// Notes are overwritten while others read them: a reader gets a complete note or none.
TEST_P(Members, ReadOnlyCompleteNotes) {
  const std::uint64_t last = repetitions(40'000, 4'000);
  run({}, [&](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    std::mt19937_64 random(kSeed + member.index());
    std::vector<std::uint64_t> completed(peer_group.members(), 0);
    for (std::uint64_t operation = 1; operation <= last; ++operation) {
      peer_group.status().begin(note_for(operation, member.index()));
      for (std::uint32_t peer = 0; peer < peer_group.members(); ++peer) {
        const std::uint64_t now = peer_group.status().completed_by(peer);
        ASSERT_GE(now, completed[peer]) << "the number of completed operations decreased";
        completed[peer] = now;
        const std::uint64_t about = now + random() % 4;
        Note note;
        if (!peer_group.status().note_of(peer, about, note)) continue;
        const Note expected = note_for(about, peer);
        ASSERT_EQ(note.operation, about);
        ASSERT_EQ(note.digest, expected.digest);
        ASSERT_EQ(note.verdict, expected.verdict);
        for (std::size_t i = 0; i < std::size(note.words); ++i) ASSERT_EQ(note.words[i], expected.words[i]);
      }
      peer_group.complete(operation);
      for (std::uint32_t peer = 0; operation == 1 && peer < peer_group.members(); ++peer)  // all members begin together
        ASSERT_TRUE(eventually([&] { return peer_group.status().completed_by(peer) > 0; }));
    }
    for (std::uint32_t peer = 0; peer < peer_group.members(); ++peer) {
      EXPECT_TRUE(eventually([&] { return peer_group.status().completed_by(peer) == last; }));
      Note note;
      EXPECT_TRUE(peer_group.status().note_of(peer, last, note)) << "the last note stays";
      EXPECT_FALSE(peer_group.status().note_of(peer, last + 1, note)) << "the member has not begun it";
      EXPECT_FALSE(peer_group.status().note_of(peer, 1, note)) << "the note was overwritten";
    }
  });
}

TEST_P(Members, SeeTheFateOfOthers) {
  run({}, [](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    if (member.index() == 0) {
      EXPECT_EQ(peer_group.status().fate_of(0).reason, 0U);
      peer_group.status().leave({7, 1});
      peer_group.status().leave({9, 0});
    }
    if (member.index() != 0) {
      EXPECT_TRUE(eventually([&] { return peer_group.status().departures() != 0; }));
    }
    EXPECT_TRUE(eventually([&] { return peer_group.status().fate_of(0).reason != 0; }));
    EXPECT_EQ(peer_group.status().fate_of(0).reason, 7U) << "the first reason stays";
    EXPECT_EQ(peer_group.status().fate_of(0).culprit, 1U);
    for (std::uint32_t peer = 1; peer < peer_group.members(); ++peer) EXPECT_EQ(peer_group.status().fate_of(peer).reason, 0U);
  });
}

// ---- sleep ----

// Messages go around a ring; a member without one sleeps. Members poll for a random time first, so that arming and waking
// interleave in every way.
// interleave in every way.
TEST_P(Members, ThatSleepAreAlwaysWoken) {
  run({}, [](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    const std::uint64_t rounds = peer_group.members() == 2 ? repetitions(40'000, 4'000) : repetitions(8'000, 1'000);
    const std::uint32_t next = (member.index() + 1) % peer_group.members();
    const std::uint32_t last = (member.index() + peer_group.members() - 1) % peer_group.members();
    const StreamGeometry geometry{8, 1, 1, 1};
    Flow send = sending(peer_group, {member.index(), 0, 0}, {next}, geometry);
    Flow receive = receiving(peer_group, member.index(), {last, 0, 0}, geometry);
    std::mt19937_64 random(kSeed + member.index());
    for (std::uint64_t operation = 1; operation <= rounds; ++operation) {
      send.next = receive.next = 0;
      const auto sent = [&] { return send.done() || send.step(operation); };
      const auto received = [&] { return receive.done() || receive.step(operation); };
      // Member 0 sends first and reads last; the others forward what they have read.
      const bool first = awaited(
          member, [&] { return member.index() == 0 ? sent() : received(); }, random() % 64);
      ASSERT_TRUE(first) << "round " << operation << ": no wakeup";
      const bool second = awaited(
          member, [&] { return member.index() == 0 ? received() : sent(); }, random() % 64);
      ASSERT_TRUE(second) << "round " << operation << ": no wakeup";
      peer_group.complete(operation);
    }
  });
}

// Credit within an operation, from releases only.
TEST_P(Members, ThatWaitForCreditAreWoken) {
  run({}, [](PeerGroupMember& member) {
    if (member.index() > 1) return;
    PeerGroup& peer_group = member.peer_group();
    const StreamGeometry geometry{500, 1, repetitions(10'000, 1'000), 1};
    Flow flow =
        member.index() == 0 ? sending(peer_group, {0, 0, 0}, {1}, geometry) : receiving(peer_group, 1, {0, 0, 0}, geometry);
    std::mt19937_64 random(kSeed + member.index());
    while (!flow.done())
      ASSERT_TRUE(awaited(
          member, [&] { return flow.step(1); }, random() % 64))
          << "slice " << flow.next;
  });
}

TEST_P(Members, ThatSleepAreWokenByADeparture) {
  run({}, [](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    if (member.index() == 0) {
      peer_group.status().leave({3, 0});
    } else {
      EXPECT_TRUE(awaited(
          member, [&] { return peer_group.status().fate_of(0).reason == 3; }, 0));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Members, every_transport({2, 4}), name_of_both);

}  // namespace
}  // namespace seto::support

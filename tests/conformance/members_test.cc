// What members say of themselves: notes, progress, fates; and that who sleeps is woken.

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

// Notes are written over while others read them: each reads whole or not at all.
TEST_P(Members, ReadNotesWholeOrNotAtAll) {
  const std::uint64_t last = 100'000 / kLess;
  run({}, [&](CircleMember& member) {
    Circle& circle = member.circle();
    std::mt19937_64 random(kSeed + member.index());
    std::vector<std::uint64_t> completed(circle.members(), 0);
    for (std::uint64_t operation = 1; operation <= last; ++operation) {
      circle.begin(note_for(operation, member.index()));
      for (std::uint32_t peer = 0; peer < circle.members(); ++peer) {
        const std::uint64_t now = circle.completed_by(peer);
        ASSERT_GE(now, completed[peer]) << "completion goes back";
        completed[peer] = now;
        const std::uint64_t about = now + random() % 4;
        Note note;
        if (!circle.note_of(peer, about, note)) continue;
        const Note expected = note_for(about, peer);
        ASSERT_EQ(note.operation, about);
        ASSERT_EQ(note.digest, expected.digest);
        ASSERT_EQ(note.verdict, expected.verdict);
        for (std::size_t i = 0; i < std::size(note.words); ++i) ASSERT_EQ(note.words[i], expected.words[i]);
      }
      circle.complete(operation);
      for (std::uint32_t peer = 0; operation == 1 && peer < circle.members(); ++peer)  // all begin together
        ASSERT_TRUE(eventually([&] { return circle.completed_by(peer) > 0; }));
    }
    for (std::uint32_t peer = 0; peer < circle.members(); ++peer) {
      EXPECT_TRUE(eventually([&] { return circle.completed_by(peer) == last; }));
      Note note;
      EXPECT_TRUE(circle.note_of(peer, last, note)) << "the last note stays";
      EXPECT_FALSE(circle.note_of(peer, last + 1, note)) << "it has not come to it";
      EXPECT_FALSE(circle.note_of(peer, 1, note)) << "it left it long ago";
    }
  });
}

TEST_P(Members, SeeHowOthersLeft) {
  run({}, [](CircleMember& member) {
    Circle& circle = member.circle();
    if (member.index() == 0) {
      EXPECT_EQ(circle.fate_of(0).reason, 0U);
      circle.leave({7, 1});
      circle.leave({9, 0});
    }
    EXPECT_TRUE(eventually([&] { return circle.fate_of(0).reason != 0; }));
    EXPECT_EQ(circle.fate_of(0).reason, 7U) << "the first reason stays";
    EXPECT_EQ(circle.fate_of(0).culprit, 1U);
    for (std::uint32_t peer = 1; peer < circle.members(); ++peer) EXPECT_EQ(circle.fate_of(peer).reason, 0U);
  });
}

// The memory face: a message names a place in its sender's memory, and what was written there before is there.
TEST_P(Members, ReadEachOthersMemoryInPlace) {
  run({}, [](CircleMember& member) {
    constexpr std::size_t kSize = 20'000;
    const std::uint32_t count = member.circle().members();
    std::byte* const own = member.shared_memory(kSize);
    if (own == nullptr) {
      EXPECT_EQ(member.circle().direct(0).data, nullptr) << "no memory, no face";
      return;
    }
    const StreamGeometry geometry{8, 1, 1, 1};
    std::vector<std::uint32_t> others;
    std::vector<std::unique_ptr<ReceiveStream>> streams(count);
    for (std::uint32_t peer = 0; peer < count; ++peer) {
      if (peer == member.index()) continue;
      others.push_back(peer);
      streams[peer] = member.circle().open_receive({peer, 1, 0}, geometry).value();
    }
    const auto send = member.circle().open_send({member.index(), 1, 0}, others, geometry).value();
    for (std::uint64_t operation = 1; operation <= 50; ++operation) {
      std::byte* slot = nullptr;
      ASSERT_TRUE(eventually([&] { return (slot = send->acquire(mark_of(operation, 0))) != nullptr; }));
      // Two halves in turn: of the one from the last operation but one, every reader has said that it is done.
      std::byte* const half = own + operation % 2 * (kSize / 2);
      write_pattern(half, kSize / 2, operation * 8 + member.index());
      const auto offset = static_cast<std::uint64_t>(half - member.circle().direct(member.index()).data);
      std::memcpy(slot, &offset, sizeof offset);
      send->commit(mark_of(operation, 0));
      for (const std::uint32_t peer : others) {
        const std::byte* message = nullptr;
        ASSERT_TRUE(eventually([&] { return (message = streams[peer]->front(mark_of(operation, 0))) != nullptr; }));
        std::uint64_t at = 0;
        std::memcpy(&at, message, sizeof at);
        const Mapping there = member.circle().direct(peer);
        ASSERT_LE(at + kSize / 2, there.size);
        EXPECT_TRUE(has_pattern(there.data + at, kSize / 2, operation * 8 + peer));
      }
      member.circle().complete(operation);
    }
  });
}

// ---- sleep ----

// Messages go round; whoever has none sleeps. Members look for a random while first, so that arming and ringing meet in every
// way.
TEST_P(Members, ThatSleepAreAlwaysWoken) {
  run({}, [](CircleMember& member) {
    Circle& circle = member.circle();
    const std::uint64_t rounds = (circle.members() == 2 ? 100'000 : 20'000) / kLess;
    const std::uint32_t next = (member.index() + 1) % circle.members();
    const std::uint32_t last = (member.index() + circle.members() - 1) % circle.members();
    const StreamGeometry geometry{8, 1, 1, 1};
    Flow send = sending(circle, {member.index(), 0, 0}, {next}, geometry);
    Flow receive = receiving(circle, member.index(), {last, 0, 0}, geometry);
    std::mt19937_64 random(kSeed + member.index());
    for (std::uint64_t operation = 1; operation <= rounds; ++operation) {
      send.next = receive.next = 0;
      const auto sent = [&] { return send.done() || send.step(operation); };
      const auto received = [&] { return receive.done() || receive.step(operation); };
      // Member 0 sends first and reads last; the others pass on what they have read.
      const bool first = awaited(
          member, [&] { return member.index() == 0 ? sent() : received(); }, random() % 64);
      ASSERT_TRUE(first) << "round " << operation << ": no bell";
      const bool second = awaited(
          member, [&] { return member.index() == 0 ? received() : sent(); }, random() % 64);
      ASSERT_TRUE(second) << "round " << operation << ": no bell";
      circle.complete(operation);
    }
  });
}

// Credit within an operation, by release alone.
TEST_P(Members, ThatWaitForCreditAreWoken) {
  run({}, [](CircleMember& member) {
    if (member.index() > 1) return;
    Circle& circle = member.circle();
    const StreamGeometry geometry{500, 1, 20'000 / kLess, 1};
    Flow flow = member.index() == 0 ? sending(circle, {0, 0, 0}, {1}, geometry) : receiving(circle, 1, {0, 0, 0}, geometry);
    std::mt19937_64 random(kSeed + member.index());
    while (!flow.done())
      ASSERT_TRUE(awaited(
          member, [&] { return flow.step(1); }, random() % 64))
          << "slice " << flow.next;
  });
}

TEST_P(Members, ThatSleepHearOfADeparture) {
  run({}, [](CircleMember& member) {
    Circle& circle = member.circle();
    if (member.index() == 0) {
      circle.leave({3, 0});
    } else {
      EXPECT_TRUE(awaited(
          member, [&] { return circle.fate_of(0).reason == 3; }, 0));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Members, every_transport({2, 4}), name_of_both);

}  // namespace
}  // namespace seto::support

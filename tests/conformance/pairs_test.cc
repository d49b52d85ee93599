// Messages between two members, beside operations: whole, in order, once, whatever their size; and what both ends hear where they
// do not agree.

#include <algorithm>
#include <optional>
#include <random>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kSeed = 22;

// Around what the transport carries otherwise, around its pieces, and so long that a ring turns many times.
std::vector<std::uint64_t> sizes_of(const CircleTransport& transport) {
  std::vector<std::uint64_t> sizes = {0,      1,      31,     32,     33,     4095,   4096,    4097,
                                      16'383, 16'384, 16'385, 65'535, 65'536, 65'537, 262'143, 262'145};
  for (const std::uint32_t size : transport.boundaries()) sizes.push_back(size);
  sizes.push_back((std::uint64_t{24} << 20) / kLess + 3);
  return sizes;
}

enum class Outcome : std::uint8_t { under_way, whole, refused };

// One end of the messages between two members, a message at a time.
struct PairEnd {
  std::unique_ptr<PairSender> send;
  std::unique_ptr<PairReceiver> receive;
  std::uint64_t done = 0;   // bytes of the message under way
  std::size_t largest = 0;  // piece so far

  [[nodiscard]] std::uint64_t current() const { return send != nullptr ? send->current() : receive->current(); }
  [[nodiscard]] Letter other_end() const { return send != nullptr ? send->other_end() : receive->other_end(); }

  // The next piece, if it can go.
  Outcome step(const Letter& letter, std::uint64_t key, bool& moved) {
    const std::uint64_t message = current();
    const PairPiece piece = send != nullptr ? send->acquire(letter) : receive->front(letter);
    moved = piece.state != PairPiece::State::waiting;
    if (!moved) return Outcome::under_way;
    if (piece.state == PairPiece::State::refused) {
      done = 0;
      EXPECT_EQ(current(), message + 1) << "what is refused is over";
      return Outcome::refused;
    }
    EXPECT_LE(done + piece.size, letter.size);
    largest = std::max(largest, piece.size);
    bool last = false;
    if (send != nullptr) {
      write_pattern(piece.data, piece.size, key + done);
      last = send->commit();
    } else {
      EXPECT_TRUE(has_pattern(piece.data, piece.size, key + done))
          << "message " << message << ", " << letter.size << " bytes, at " << done;
      last = receive->release();
    }
    done += piece.size;
    EXPECT_EQ(last, done == letter.size || letter.verdict != 0) << "with a verdict, nothing but that moves";
    EXPECT_EQ(current(), message + (last ? 1 : 0));
    if (last) done = 0;
    return last ? Outcome::whole : Outcome::under_way;
  }
  Outcome step(const Letter& letter, std::uint64_t key) {
    bool moved = false;
    return step(letter, key, moved);
  }
  // As far as it can go now.
  Outcome go(const Letter& letter, std::uint64_t key) {
    Outcome outcome = Outcome::under_way;
    for (bool moved = true; outcome == Outcome::under_way && moved;) outcome = step(letter, key, moved);
    return outcome;
  }
};

PairEnd sender_to(Circle& circle, std::uint32_t receiver) {
  PairEnd end;
  end.send = circle.open_pair_send(receiver).value();
  return end;
}

PairEnd receiver_from(Circle& circle, std::uint32_t sender) {
  PairEnd end;
  end.receive = circle.open_pair_receive(sender).value();
  return end;
}

// Both ends derive the same messages from this.
std::uint64_t key_of(std::uint32_t from, std::uint32_t to, std::uint64_t message) {
  return mixed(mixed(from * 64 + to) + message) & ~std::uint64_t{7};
}

// All messages of all ends of a member, in whatever order they can go; letters by (from, to, message).
template <class LetterOf>
void exchange(CircleMember& member, std::uint64_t last, LetterOf letter_of) {
  Circle& circle = member.circle();
  const std::uint32_t own = member.index();
  std::vector<PairEnd> ends;
  std::vector<std::uint32_t> peers;
  for (std::uint32_t peer = 0; peer < circle.members(); ++peer) {
    if (peer == own) continue;
    ends.push_back(sender_to(circle, peer));
    ends.push_back(receiver_from(circle, peer));
    peers.insert(peers.end(), 2, peer);
  }
  const bool ended = eventually([&] {
    bool all = true;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::uint64_t message = ends[i].current();
      if (message > last) continue;
      all = false;
      const bool sends = ends[i].send != nullptr;
      const std::uint32_t from = sends ? own : peers[i], to = sends ? peers[i] : own;
      EXPECT_NE(ends[i].go(letter_of(from, to, message), key_of(from, to, message)), Outcome::refused)
          << "message " << message << " from " << from << " to " << to;
    }
    return all || ::testing::Test::HasFailure();
  });
  EXPECT_TRUE(ended) << circle.failure().text();
  // Who ends before its messages are read would keep its ring from the next user.
  static_cast<void>(eventually([&] {
    circle.complete(1);
    for (std::uint32_t peer = 0; peer < circle.members(); ++peer)
      if (circle.completed_by(peer) < 1) return false;
    return true;
  }));
}

using Pairs = EveryTransport;

TEST_P(Pairs, CarryEverySizeBothWays) {
  const std::vector<std::uint64_t> sizes = sizes_of(transport());
  run({}, [&](CircleMember& member) {
    exchange(member, sizes.size() * 2, [&](std::uint32_t from, std::uint32_t to, std::uint64_t message) {
      const std::size_t turn = message - 1;  // up, then down: rings grow, and serve small ones after
      return Letter{turn < sizes.size() ? sizes[turn] : sizes[2 * sizes.size() - 1 - turn], from * 16 + to, 0};
    });
  });
}

// Sizes from nothing to some pieces, so that messages begin at every slot of the ring.
TEST_P(Pairs, KeepTheirOrderOverManyMessages) {
  run({}, [&](CircleMember& member) {
    exchange(member, 4000 / kLess, [&](std::uint32_t from, std::uint32_t to, std::uint64_t message) {
      const std::uint64_t random = mixed(kSeed + key_of(from, to, message));
      const std::uint64_t most = random % 3 == 0 ? 40 : random % 3 == 1 ? 12'000 : 80'000;
      return Letter{random / 3 % most, message, 0};
    });
  });
}

// Ends that disagree at random, about size, label or whether to take part: the receiver always hears of it, the sender unless all
// was sent before. The next message is none the worse for it.
TEST_P(Pairs, GoOnAfterDisagreements) {
  struct Said {
    Letter sender, receiver;
  };
  const auto said = [](std::uint32_t from, std::uint32_t to, std::uint64_t message) {
    const std::uint64_t random = mixed(kSeed * 3 + key_of(from, to, message));
    Said both;
    both.sender = {random % 4 == 0 ? random / 64 % 33 : random / 64 % 700'000, message, 0};
    both.receiver = both.sender;
    switch (random / 4 % 8) {
      case 0:
        both.receiver.size += 1 + random / 1024 % 3;
        break;
      case 1:
        both.receiver.label += 7;
        break;
      case 2:
        both.sender.verdict = 3;
        break;
      case 3:
        both.receiver.verdict = 4;
        break;
      default:
        break;
    }
    return both;
  };
  run({}, [&](CircleMember& member) {
    const std::uint64_t last = 1500 / kLess;
    Circle& circle = member.circle();
    const std::uint32_t own = member.index(), next = (own + 1) % circle.members(),
                        before = (own + circle.members() - 1) % circle.members();
    PairEnd out = sender_to(circle, next), in = receiver_from(circle, before);
    std::uint64_t heard = 0;
    EXPECT_TRUE(eventually([&] {
      if (const std::uint64_t message = out.current(); message <= last) {
        const Said both = said(own, next, message);
        const Outcome outcome = out.go(both.sender, key_of(own, next, message));
        heard += outcome == Outcome::refused ? 1 : 0;
        if (both.sender == both.receiver) {
          EXPECT_NE(outcome, Outcome::refused) << "message " << message;
        }
      }
      if (const std::uint64_t message = in.current(); message <= last) {
        const Said both = said(before, own, message);
        const Outcome outcome = in.go(both.receiver, key_of(before, own, message));
        if (outcome != Outcome::under_way) {
          EXPECT_EQ(outcome == Outcome::refused, both.sender != both.receiver) << "message " << message;
        }
        if (outcome == Outcome::refused && both.receiver.verdict == 0) {
          EXPECT_EQ(in.other_end(), both.sender) << "message " << message;
        }
      }
      return (out.current() > last && in.current() > last) || ::testing::Test::HasFailure();
    })) << "sent "
        << out.current() << ", received " << in.current() << " " << circle.failure().text();
    // Where a message leaves its sender's memory early, more is sent before the answer comes.
    EXPECT_GT(heard, member.shares_memory() ? last / 16 : 0) << "seed " << kSeed << ": senders hear of it too";
    EXPECT_TRUE(circle.failure().ok()) << circle.failure().text();
    circle.complete(1);
    EXPECT_TRUE(eventually([&] { return circle.completed_by(next) == 1; }));
  });
}

// Either end may sleep: for data, or for room.
TEST_P(Pairs, WakeWhoeverSleeps) {
  run({}, [](CircleMember& member) {
    Circle& circle = member.circle();
    if (member.index() > 1) return;
    const std::uint32_t peer = 1 - member.index();
    PairEnd out = sender_to(circle, peer), in = receiver_from(circle, peer);
    std::mt19937_64 random(kSeed + member.index());
    for (std::uint64_t round = 1; round <= 3000 / kLess; ++round)
      for (std::uint32_t turn = 0; turn < 2; ++turn) {
        const std::uint32_t from = (turn + static_cast<std::uint32_t>(round)) % 2;
        PairEnd& end = from == member.index() ? out : in;
        const Letter letter{round % 3 == 0 ? 300'000U : round % 3 * 50U, round, 0};
        const bool went = awaited(
            member, [&] { return end.go(letter, key_of(from, 1 - from, round)) == Outcome::whole; }, random() % 64);
        ASSERT_TRUE(went) << "round " << round << ": no bell";
      }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Pairs, every_transport({2, 3}), name_of_both);

// ---- one step at a time ----

class PairSteps : public OneThread {};

constexpr std::uint64_t kKey = 8000;

TEST_P(PairSteps, NothingArrivesBeforeItsCommit) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  for (const std::uint64_t size : {0U, 20U, 5000U}) {
    const Letter letter{size, 1, 0};
    EXPECT_FALSE(in.receive->knocks());
    const PairPiece piece = out.send->acquire(letter);
    ASSERT_EQ(piece.state, PairPiece::State::ready);
    ASSERT_EQ(piece.size, size);
    EXPECT_EQ(out.send->acquire(letter).data, piece.data) << "asking twice";
    EXPECT_EQ(in.receive->front(letter).state, PairPiece::State::waiting);
    EXPECT_FALSE(in.receive->knocks());
    write_pattern(piece.data, piece.size, kKey);
    EXPECT_TRUE(out.send->commit());
    EXPECT_TRUE(in.receive->knocks());
    EXPECT_EQ(in.receive->at_the_door(), letter);
    EXPECT_EQ(in.receive->front(letter).data, in.receive->front(letter).data) << "asking twice";
    EXPECT_FALSE(in.receive->knocks()) << "it is being received";
    EXPECT_EQ(in.go(letter, kKey), Outcome::whole);
  }
}

// The pieces of one message, and messages that nobody takes: some go, then no more, and each release makes room again.
TEST_P(PairSteps, RoomEndsAndComesBack) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  const Letter large{1 << 20, 1, 0};
  EXPECT_EQ(out.go(large, kKey), Outcome::under_way);
  const std::uint64_t ring = out.done;
  EXPECT_GT(ring, 0U);
  EXPECT_LT(ring, large.size);
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_EQ(in.receive->front(large).state, PairPiece::State::ready);
    EXPECT_EQ(out.send->acquire(large).state, PairPiece::State::waiting) << "looking is not releasing";
    EXPECT_EQ(in.step(large, kKey), Outcome::under_way);
    EXPECT_EQ(out.go(large, kKey), Outcome::under_way);
  }
  EXPECT_EQ(out.done - ring, in.done);
  Outcome sent = Outcome::under_way, received = Outcome::under_way;
  while (received == Outcome::under_way) {
    if (sent == Outcome::under_way) sent = out.go(large, kKey);
    received = in.go(large, kKey);
  }
  EXPECT_EQ(sent, Outcome::whole);
  EXPECT_EQ(received, Outcome::whole);

  const Letter small{8, 2, 0};
  std::uint64_t ahead = 0;
  while (out.go(small, kKey) == Outcome::whole && ahead < 1000) ++ahead;
  EXPECT_GT(ahead, 1U) << "several may be under way";
  EXPECT_LT(ahead, 1000U) << "and not all";
  EXPECT_EQ(in.go(small, kKey), Outcome::whole);
  EXPECT_EQ(out.go(small, kKey), Outcome::whole);
  EXPECT_EQ(out.go(small, kKey), Outcome::under_way);
}

TEST_P(PairSteps, ARingGrowsOnlyOnceAllOfItIsRead) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  const Letter small{3000, 1, 0}, large{90'000, 2, 0};
  ASSERT_EQ(out.go(small, kKey), Outcome::whole);
  const std::size_t before = members[0]->leased();
  EXPECT_EQ(out.go(large, kKey), Outcome::under_way) << "in the ring that there is";
  EXPECT_EQ(members[0]->leased(), before);
  EXPECT_LE(out.largest, 4096U);
  EXPECT_EQ(in.go(small, kKey), Outcome::whole);
  Outcome received = Outcome::under_way;
  while (received == Outcome::under_way) {
    if (out.current() == 2) (void)out.go(large, kKey);
    received = in.go(large, kKey);
  }
  ASSERT_EQ(out.current(), 3U);
  ASSERT_EQ(out.go(large, kKey), Outcome::whole);
  EXPECT_GT(out.largest, 4096U);
  EXPECT_EQ(in.go(large, kKey), Outcome::whole);
  const std::size_t leased = members[0]->leased();
  EXPECT_GT(leased, before);
  ASSERT_EQ(out.go(small, kKey), Outcome::whole);
  EXPECT_EQ(in.go(small, kKey), Outcome::whole);
  EXPECT_EQ(members[0]->leased(), leased) << "a smaller one keeps the ring";
  EXPECT_EQ(members[1]->leased(), 0U) << "who only receives holds none";
  out.send.reset();
  EXPECT_EQ(members[0]->leased(), 0U);
}

TEST_P(PairSteps, EndsThatDisagreeBothHearWhatTheOtherSaid) {
  for (const Letter& other : {Letter{999'999, 1, 0}, Letter{1'000'000, 2, 0}, Letter{0, 1, 0}, Letter{1'000'000, 1, 5}}) {
    const auto members = make({.members = 2});
    PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
    const Letter letter{1'000'000, 1, 0};
    ASSERT_EQ(out.go(letter, kKey), Outcome::under_way);
    ASSERT_EQ(in.go(other, kKey), Outcome::refused);
    if (other.verdict == 0) {
      EXPECT_EQ(in.other_end(), letter);
    }
    ASSERT_EQ(out.go(letter, kKey), Outcome::refused);
    EXPECT_EQ(out.other_end(), other);
    for (const std::uint64_t size : {10U, 100'000U}) {  // and the next ones are sound
      ASSERT_EQ(out.go({size, 9, 0}, kKey + size), Outcome::whole);
      ASSERT_EQ(in.go({size, 9, 0}, kKey + size), Outcome::whole);
    }
    EXPECT_TRUE(members[0]->circle().failure().ok());
    EXPECT_TRUE(members[1]->circle().failure().ok());
  }
}

TEST_P(PairSteps, AVerdictOfTheSenderMovesNothing) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  const Letter rejected{5'000'000, 1, 6}, expected{5'000'000, 1, 0};
  const PairPiece piece = out.send->acquire(rejected);
  ASSERT_EQ(piece.state, PairPiece::State::ready);
  EXPECT_EQ(piece.size, 0U);
  EXPECT_TRUE(out.send->commit());
  EXPECT_EQ(in.go(expected, kKey), Outcome::refused);
  EXPECT_EQ(in.other_end(), rejected);
  EXPECT_EQ(members[0]->leased(), 0U);
}

// A receiver that takes no part does not wait for a message to say so. Its sender hears of it while it has something to send.
TEST_P(PairSteps, AVerdictOfTheReceiverRefusesWhatHasNotBegun) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  for (int round = 0; round < 10; ++round) {
    const Letter refusal{1 << 20, 1, static_cast<std::uint32_t>(round + 1)};
    EXPECT_EQ(in.go(refusal, kKey), Outcome::refused);
    ASSERT_EQ(out.go({1 << 20, 1, 0}, kKey), Outcome::refused) << "round " << round;
    EXPECT_EQ(out.other_end(), refusal);
    ASSERT_EQ(out.go({64, 1, 0}, kKey), Outcome::whole);
    ASSERT_EQ(in.go({64, 1, 0}, kKey), Outcome::whole);
  }
}

// The sender is done when all is written, and may be gone before it is read.
TEST_P(PairSteps, ASenderMayEndFirst) {
  for (const std::uint64_t size : {20U, 3000U, 60'000U}) {
    const auto members = make({.members = 2, .circles = 2});
    PairEnd in = receiver_from(members[1]->circle(), 0);
    const Letter letter{size, 1, 0};
    {
      PairEnd out = sender_to(members[0]->circle(), 1);
      ASSERT_EQ(out.go(letter, kKey), Outcome::whole);
    }
    members[0]->close(0);
    PairEnd next = sender_to(members[0]->circle(1), 1);  // the next user of the pool writes elsewhere
    ASSERT_EQ(next.go(letter, kKey + 80), Outcome::whole);
    EXPECT_EQ(in.go(letter, kKey), Outcome::whole) << size;
  }
}

TEST_P(PairSteps, ARingGoesBackWhenItsReceiverHasLeft) {
  const auto members = make({.members = 2});
  {
    PairEnd out = sender_to(members[0]->circle(), 1);
    ASSERT_EQ(out.go({3000, 1, 0}, kKey), Outcome::whole);
    members[1]->circle().leave({5, 1});
  }
  EXPECT_EQ(members[0]->leased(), 0U);
}

TEST_P(PairSteps, AnExhaustedPoolIsAnErrorWithAText) {
  const auto members = make({.members = 2, .limit_bytes = 128 << 10});
  PairEnd out = sender_to(members[0]->circle(), 1), in = receiver_from(members[1]->circle(), 0);
  EXPECT_EQ(out.go({20, 1, 0}, kKey), Outcome::whole) << "a short one needs no slots";
  EXPECT_EQ(out.go({1 << 20, 1, 0}, kKey), Outcome::under_way);
  EXPECT_EQ(out.done, 0U);
  EXPECT_EQ(members[0]->circle().failure().code(), Code::unavailable);
  EXPECT_NE(members[0]->circle().failure().text().find("shared memory"), std::string_view::npos);
  EXPECT_EQ(in.go({20, 1, 0}, kKey), Outcome::whole);
}

TEST_P(PairSteps, PairsThatCannotBeAreRefused) {
  const auto members = make({.members = 3});
  Circle& circle = members[1]->circle();
  for (const std::uint32_t nobody : {1U, 3U, ~0U}) {
    EXPECT_EQ(circle.open_pair_send(nobody).status().code(), Code::invalid_usage);
    EXPECT_EQ(circle.open_pair_receive(nobody).status().code(), Code::invalid_usage);
  }
  EXPECT_TRUE(circle.failure().ok());
}

INSTANTIATE_TEST_SUITE_P(All, PairSteps, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support

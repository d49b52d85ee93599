// Messages between two members, outside of operations: complete, in order, once, for any size. If the ends disagree, both learn
// it.

#include <algorithm>
#include <optional>
#include <random>

#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kSeed = 22;

// Sizes around the limits of the transport and of its pieces, and one that fills a ring many times.
std::vector<std::uint64_t> sizes_of(const PeerGroupTransport& transport) {
  std::vector<std::uint64_t> sizes = {0,      1,      31,     32,     33,     4095,   4096,    4097,
                                      16'383, 16'384, 16'385, 65'535, 65'536, 65'537, 262'143, 262'145};
  for (const std::uint32_t size : transport.boundaries()) sizes.push_back(size);
  sizes.push_back((std::uint64_t{24} << 20) / kLess + 3);
  return sizes;
}

enum class Outcome : std::uint8_t { under_way, whole, refused };

// One end of the messages between two members.
struct PairEnd {
  std::unique_ptr<PairSender> send;
  std::unique_ptr<PairReceiver> receive;
  std::uint64_t done = 0;   // bytes of the current message
  std::size_t largest = 0;  // largest piece so far

  [[nodiscard]] std::uint64_t current() const { return send != nullptr ? send->current() : receive->current(); }
  [[nodiscard]] MessageHeader other_end() const { return send != nullptr ? send->other_end() : receive->other_end(); }

  // Sends or receives the next piece, if possible.
  Outcome step(const MessageHeader& header, std::uint64_t key, bool& moved) {
    const std::uint64_t message = current();
    const PairPiece piece = send != nullptr ? send->acquire(header) : receive->front(header);
    moved = piece.state != PairPiece::State::waiting;
    if (!moved) return Outcome::under_way;
    if (piece.state == PairPiece::State::refused) {
      done = 0;
      EXPECT_EQ(current(), message + 1) << "a refused message has ended";
      return Outcome::refused;
    }
    EXPECT_LE(done + piece.size, header.size);
    largest = std::max(largest, piece.size);
    bool last = false;
    if (send != nullptr) {
      write_pattern(piece.data, piece.size, key + done);
      last = send->commit();
    } else {
      EXPECT_TRUE(has_pattern(piece.data, piece.size, key + done))
          << "message " << message << ", " << header.size << " bytes, at " << done;
      last = receive->release();
    }
    done += piece.size;
    EXPECT_EQ(last, done == header.size || header.verdict != 0) << "with a verdict no bytes move";
    EXPECT_EQ(current(), message + (last ? 1 : 0));
    if (last) done = 0;
    return last ? Outcome::whole : Outcome::under_way;
  }
  Outcome step(const MessageHeader& header, std::uint64_t key) {
    bool moved = false;
    return step(header, key, moved);
  }
  // Moves all pieces that can move now.
  Outcome go(const MessageHeader& header, std::uint64_t key) {
    Outcome outcome = Outcome::under_way;
    for (bool moved = true; outcome == Outcome::under_way && moved;) outcome = step(header, key, moved);
    return outcome;
  }
};

PairEnd sender_to(PeerGroup& peer_group, std::uint32_t receiver) {
  PairEnd end;
  end.send = peer_group.open_pair_send(receiver).value();
  return end;
}

PairEnd receiver_from(PeerGroup& peer_group, std::uint32_t sender) {
  PairEnd end;
  end.receive = peer_group.open_pair_receive(sender).value();
  return end;
}

// Both ends derive the same messages from this.
std::uint64_t key_of(std::uint32_t from, std::uint32_t to, std::uint64_t message) {
  return mixed(mixed(from * 64 + to) + message) & ~std::uint64_t{7};
}

// All messages of all ends of a member, in any possible order; headers by (from, to, message).
template <class LetterOf>
void exchange(PeerGroupMember& member, std::uint64_t last, LetterOf header_of) {
  PeerGroup& peer_group = member.peer_group();
  const std::uint32_t own = member.index();
  std::vector<PairEnd> ends;
  std::vector<std::uint32_t> peers;
  for (std::uint32_t peer = 0; peer < peer_group.members(); ++peer) {
    if (peer == own) continue;
    ends.push_back(sender_to(peer_group, peer));
    ends.push_back(receiver_from(peer_group, peer));
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
      EXPECT_NE(ends[i].go(header_of(from, to, message), key_of(from, to, message)), Outcome::refused)
          << "message " << message << " from " << from << " to " << to;
    }
    return all || ::testing::Test::HasFailure();
  });
  EXPECT_TRUE(ended) << peer_group.failure().text();
  // A sender that ends before its messages are read would keep its ring leased.
  static_cast<void>(eventually([&] {
    peer_group.complete(1);
    for (std::uint32_t peer = 0; peer < peer_group.members(); ++peer)
      if (peer_group.status().completed_by(peer) < 1) return false;
    return true;
  }));
}

using Pairs = EveryTransport;

TEST_P(Pairs, CarryEverySizeInBothDirections) {
  const std::vector<std::uint64_t> sizes = sizes_of(transport());
  run({}, [&](PeerGroupMember& member) {
    exchange(member, sizes.size() * 2, [&](std::uint32_t from, std::uint32_t to, std::uint64_t message) {
      const std::size_t turn = message - 1;  // ascending, then descending: rings grow, then carry small messages
      return MessageHeader{turn < sizes.size() ? sizes[turn] : sizes[2 * sizes.size() - 1 - turn], from * 16 + to, 0};
    });
  });
}

// Sizes from nothing to some pieces, so that messages begin at every slot of the ring.
TEST_P(Pairs, KeepTheirOrderOverManyMessages) {
  run({}, [&](PeerGroupMember& member) {
    exchange(member, repetitions(2000, 400), [&](std::uint32_t from, std::uint32_t to, std::uint64_t message) {
      const std::uint64_t random = mixed(kSeed + key_of(from, to, message));
      const std::uint64_t most = random % 3 == 0 ? 40 : random % 3 == 1 ? 12'000 : 80'000;
      return MessageHeader{random / 3 % most, message, 0};
    });
  });
}

// Ends that disagree at random about size, label or verdict: the receiver always learns it, the sender unless it had sent the
// whole message before. The next message is not affected.
TEST_P(Pairs, ContinueAfterDisagreements) {
  struct Said {
    MessageHeader sender, receiver;
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
  run({}, [&](PeerGroupMember& member) {
    const std::uint64_t last = repetitions(600, 150);
    PeerGroup& peer_group = member.peer_group();
    const std::uint32_t own = member.index(), next = (own + 1) % peer_group.members(),
                        before = (own + peer_group.members() - 1) % peer_group.members();
    PairEnd out = sender_to(peer_group, next), in = receiver_from(peer_group, before);
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
        << out.current() << ", received " << in.current() << " " << peer_group.failure().text();
    // If messages leave the sender's memory early, more are sent before the refusal arrives; over a long link all of them. A
    // context takes loopback for a long link if the machine was busy while the kernel measured it.
    const bool near = &transport() == &tcp_transport(1) || &transport() == &tcp_transport(3);
    if (near || member.shares_memory()) {
      EXPECT_GT(heard, member.shares_memory() ? last / 16 : 0) << "seed " << kSeed << ": senders learn of refusals, too";
    }
    EXPECT_TRUE(peer_group.failure().ok()) << peer_group.failure().text();
    peer_group.complete(1);
    EXPECT_TRUE(eventually([&] { return peer_group.status().completed_by(next) == 1; }));
  });
}

// Either end may sleep: the receiver for data, the sender for free slots.
TEST_P(Pairs, WakeASleepingEnd) {
  run({}, [](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    if (member.index() > 1) return;
    const std::uint32_t peer = 1 - member.index();
    PairEnd out = sender_to(peer_group, peer), in = receiver_from(peer_group, peer);
    std::mt19937_64 random(kSeed + member.index());
    for (std::uint64_t round = 1; round <= repetitions(1500, 300); ++round)
      for (std::uint32_t turn = 0; turn < 2; ++turn) {
        const std::uint32_t from = (turn + static_cast<std::uint32_t>(round)) % 2;
        PairEnd& end = from == member.index() ? out : in;
        const MessageHeader header{round % 3 == 0 ? 300'000U : round % 3 * 50U, round, 0};
        const bool went = awaited(
            member, [&] { return end.go(header, key_of(from, 1 - from, round)) == Outcome::whole; }, random() % 64);
        ASSERT_TRUE(went) << "round " << round << ": no wakeup";
      }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Pairs, every_transport({2, 3}), name_of_both);

// ---- one step at a time ----

class PairSteps : public OneThread {};

constexpr std::uint64_t kKey = 8000;

TEST_P(PairSteps, NothingArrivesBeforeItsCommit) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  for (const std::uint64_t size : {0U, 20U, 5000U}) {
    const MessageHeader header{size, 1, 0};
    EXPECT_FALSE(in.receive->has_pending());
    const PairPiece piece = out.send->acquire(header);
    ASSERT_EQ(piece.state, PairPiece::State::ready);
    ASSERT_EQ(piece.size, size);
    EXPECT_EQ(out.send->acquire(header).data, piece.data) << "asking twice";
    EXPECT_EQ(in.receive->front(header).state, PairPiece::State::waiting);
    EXPECT_FALSE(in.receive->has_pending());
    write_pattern(piece.data, piece.size, kKey);
    EXPECT_TRUE(out.send->commit());
    EXPECT_TRUE(in.receive->has_pending());
    EXPECT_EQ(in.receive->pending_header(), header);
    EXPECT_EQ(in.receive->front(header).data, in.receive->front(header).data) << "asking twice";
    EXPECT_FALSE(in.receive->has_pending()) << "it is being received";
    EXPECT_EQ(in.go(header, kKey), Outcome::whole);
  }
}

// A few pieces or messages can be sent before any is received; then each release makes room for the next.
TEST_P(PairSteps, RoomIsUsedUpAndReturns) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  const MessageHeader large{1 << 20, 1, 0};
  EXPECT_EQ(out.go(large, kKey), Outcome::under_way);
  const std::uint64_t ring = out.done;
  EXPECT_GT(ring, 0U);
  EXPECT_LT(ring, large.size);
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_EQ(in.receive->front(large).state, PairPiece::State::ready);
    EXPECT_EQ(out.send->acquire(large).state, PairPiece::State::waiting) << "acquire() does not release";
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

  const MessageHeader small{8, 2, 0};
  std::uint64_t ahead = 0;
  while (out.go(small, kKey) == Outcome::whole && ahead < 1000) ++ahead;
  EXPECT_GT(ahead, 1U) << "several may be in flight";
  EXPECT_LT(ahead, 1000U) << "but not all";
  EXPECT_EQ(in.go(small, kKey), Outcome::whole);
  EXPECT_EQ(out.go(small, kKey), Outcome::whole);
  EXPECT_EQ(out.go(small, kKey), Outcome::under_way);
}

TEST_P(PairSteps, ARingGrowsOnlyOnceItIsEmpty) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  const MessageHeader small{3000, 1, 0}, large{90'000, 2, 0};
  ASSERT_EQ(out.go(small, kKey), Outcome::whole);
  const std::size_t before = members[0]->leased();
  EXPECT_EQ(out.go(large, kKey), Outcome::under_way) << "in the present ring";
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
  EXPECT_EQ(members[1]->leased(), 0U) << "a member that only receives has no slots";
  out.send.reset();
  EXPECT_EQ(members[0]->leased(), 0U);
}

TEST_P(PairSteps, EndsThatDisagreeLearnTheOthersHeader) {
  for (const MessageHeader& other :
       {MessageHeader{999'999, 1, 0}, MessageHeader{1'000'000, 2, 0}, MessageHeader{0, 1, 0}, MessageHeader{1'000'000, 1, 5}}) {
    const auto members = make({.members = 2});
    PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
    const MessageHeader header{1'000'000, 1, 0};
    ASSERT_EQ(out.go(header, kKey), Outcome::under_way);
    ASSERT_EQ(in.go(other, kKey), Outcome::refused);
    if (other.verdict == 0) {
      EXPECT_EQ(in.other_end(), header);
    }
    ASSERT_EQ(out.go(header, kKey), Outcome::refused);
    EXPECT_EQ(out.other_end(), other);
    for (const std::uint64_t size : {10U, 100'000U}) {  // the next messages arrive intact
      ASSERT_EQ(out.go({size, 9, 0}, kKey + size), Outcome::whole);
      ASSERT_EQ(in.go({size, 9, 0}, kKey + size), Outcome::whole);
    }
    EXPECT_TRUE(members[0]->peer_group().failure().ok());
    EXPECT_TRUE(members[1]->peer_group().failure().ok());
  }
}

TEST_P(PairSteps, AVerdictOfTheSenderMovesNoData) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  const MessageHeader rejected{5'000'000, 1, 6}, expected{5'000'000, 1, 0};
  const PairPiece piece = out.send->acquire(rejected);
  ASSERT_EQ(piece.state, PairPiece::State::ready);
  EXPECT_EQ(piece.size, 0U);
  EXPECT_TRUE(out.send->commit());
  EXPECT_EQ(in.go(expected, kKey), Outcome::refused);
  EXPECT_EQ(in.other_end(), rejected);
  EXPECT_EQ(members[0]->leased(), 0U);
}

// A receiver with a verdict refuses without waiting for a message. The sender learns it while it still has pieces to send.
TEST_P(PairSteps, AVerdictOfTheReceiverRejectsAMessageThatHasNotBegun) {
  const auto members = make({.members = 2});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  for (int round = 0; round < 10; ++round) {
    const MessageHeader refusal{1 << 20, 1, static_cast<std::uint32_t>(round + 1)};
    EXPECT_EQ(in.go(refusal, kKey), Outcome::refused);
    ASSERT_EQ(out.go({1 << 20, 1, 0}, kKey), Outcome::refused) << "round " << round;
    EXPECT_EQ(out.other_end(), refusal);
    ASSERT_EQ(out.go({64, 1, 0}, kKey), Outcome::whole);
    ASSERT_EQ(in.go({64, 1, 0}, kKey), Outcome::whole);
  }
}

// A sender may end once all is written, before it is read.
TEST_P(PairSteps, ASenderMayEndFirst) {
  for (const std::uint64_t size : {20U, 3000U, 60'000U}) {
    const auto members = make({.members = 2, .peer_groups = 2});
    PairEnd in = receiver_from(members[1]->peer_group(), 0);
    const MessageHeader header{size, 1, 0};
    {
      PairEnd out = sender_to(members[0]->peer_group(), 1);
      ASSERT_EQ(out.go(header, kKey), Outcome::whole);
    }
    members[0]->close(0);
    PairEnd next = sender_to(members[0]->peer_group(1), 1);  // the next user of the pool writes elsewhere
    ASSERT_EQ(next.go(header, kKey + 80), Outcome::whole);
    EXPECT_EQ(in.go(header, kKey), Outcome::whole) << size;
  }
}

TEST_P(PairSteps, ARingIsReturnedWhenItsReceiverHasLeft) {
  const auto members = make({.members = 2});
  {
    PairEnd out = sender_to(members[0]->peer_group(), 1);
    ASSERT_EQ(out.go({3000, 1, 0}, kKey), Outcome::whole);
    members[1]->peer_group().status().leave({5, 1});
  }
  EXPECT_EQ(members[0]->leased(), 0U);
}

TEST_P(PairSteps, AnExhaustedPoolIsAnErrorWithAText) {
  const auto members = make({.members = 2, .limit_bytes = 128 << 10});
  PairEnd out = sender_to(members[0]->peer_group(), 1), in = receiver_from(members[1]->peer_group(), 0);
  EXPECT_EQ(out.go({20, 1, 0}, kKey), Outcome::whole) << "a short one needs no slots";
  EXPECT_EQ(out.go({1 << 20, 1, 0}, kKey), Outcome::under_way);
  EXPECT_EQ(out.done, 0U);
  EXPECT_EQ(members[0]->peer_group().failure().code(), Code::unavailable);
  EXPECT_NE(members[0]->peer_group().failure().text().find("shared memory"), std::string_view::npos);
  EXPECT_EQ(in.go({20, 1, 0}, kKey), Outcome::whole);
}

TEST_P(PairSteps, InvalidPairsAreRejected) {
  const auto members = make({.members = 3});
  PeerGroup& peer_group = members[1]->peer_group();
  for (const std::uint32_t no_member : {1U, 3U, ~0U}) {
    EXPECT_EQ(peer_group.open_pair_send(no_member).status().code(), Code::invalid_usage);
    EXPECT_EQ(peer_group.open_pair_receive(no_member).status().code(), Code::invalid_usage);
  }
  EXPECT_TRUE(peer_group.failure().ok());
}

INSTANTIATE_TEST_SUITE_P(All, PairSteps, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support

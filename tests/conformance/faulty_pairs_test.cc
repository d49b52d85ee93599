// Messages between two members over groups that delay, cut connections or send malformed data. One thread drives both ends.

#include <optional>
#include <random>

#include "tests/support/conformance.h"
#include "tests/support/faulty_peer_group.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kMessages = 12;

// The header of message k; both ends derive it from the seed.
MessageHeader header_of(std::uint64_t seed, std::uint64_t message) {
  const std::uint64_t random = mixed(seed * 1000 + message);
  return {random % 3 == 0 ? random / 3 % 33 : random / 3 % 40'000, random, 0};
}

std::uint64_t key_of(std::uint64_t seed, std::uint64_t message) { return mixed(seed + message * 77) & ~std::uint64_t{7}; }

// Two members, messages from 0 to 1.
class Line {
 public:
  Line(const PeerGroupTransport& transport, std::uint64_t seed, const Faults& sender, const Faults& receiver)
      : seed_(seed), members_(transport.make({.members = 2, .peer_groups = 2})) {
    peer_groups_.push_back(std::make_unique<FaultyPeerGroup>(members_[0]->peer_group(), sender));
    peer_groups_.push_back(std::make_unique<FaultyPeerGroup>(members_[1]->peer_group(), receiver));
    send_ = peer_groups_[0]->open_pair_send(1).value();
    receive_ = peer_groups_[1]->open_pair_receive(0).value();
  }

  // Random turns until all messages have arrived, or nothing has moved for `patience` turns. Returns true if all have arrived.
  bool drive(std::uint64_t patience) {
    std::mt19937_64 random(seed_);
    for (std::uint64_t idle = 0; idle < patience; ++idle) {
      if (random() % 2 == 0 ? send() : receive()) idle = 0;
      if (received_ == kMessages) return true;
      if (!peer_groups_[1]->failure().ok()) return false;
    }
    return false;
  }

  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>>& members() { return members_; }
  [[nodiscard]] std::vector<std::unique_ptr<FaultyPeerGroup>>& peer_groups() { return peer_groups_; }
  void close_streams() {
    send_.reset();
    receive_.reset();
  }

 private:
  bool send() {
    const std::uint64_t message = send_->current();
    if (message > kMessages) return false;
    const PairPiece piece = send_->acquire(header_of(seed_, message));
    if (piece.state == PairPiece::State::waiting) return false;
    if (piece.state == PairPiece::State::refused) {
      written_ = 0;
      return true;
    }
    write_pattern(piece.data, piece.size, key_of(seed_, message) + written_);
    written_ += piece.size;
    if (send_->commit()) written_ = 0;
    return true;
  }

  bool receive() {
    const std::uint64_t message = receive_->current();
    const PairPiece piece = receive_->front(header_of(seed_, message));
    if (piece.state == PairPiece::State::waiting) return false;
    if (piece.state == PairPiece::State::refused) {
      ++refused_;
      ++received_;
      read_ = 0;
      return true;
    }
    if (!has_pattern(piece.data, piece.size, key_of(seed_, message) + read_)) ++wrong_;
    read_ += piece.size;
    if (!receive_->release()) return true;
    EXPECT_EQ(read_, header_of(seed_, message).size);
    read_ = 0;
    ++received_;
    return true;
  }

  std::uint64_t seed_;
  std::vector<std::unique_ptr<PeerGroupMember>> members_;
  std::vector<std::unique_ptr<FaultyPeerGroup>> peer_groups_;
  std::unique_ptr<PairSender> send_;
  std::unique_ptr<PairReceiver> receive_;
  std::uint64_t written_ = 0, read_ = 0, received_ = 0, refused_ = 0, wrong_ = 0;
};

using FaultyPairs = OneThread;

TEST_P(FaultyPairs, ArriveWholeWithAnyDelays) {
  std::uint64_t withheld = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint32_t hold = seed % 2 == 0 ? 0 : 13;
    Line line(*GetParam(), seed, {.seed = seed, .most_delay = 5, .hold = hold},
              {.seed = seed + 1000, .most_delay = 5, .hold = hold});
    ASSERT_TRUE(line.drive(10'000)) << line.received() << " of " << kMessages;
    EXPECT_EQ(line.wrong() + line.refused(), 0U);
    for (const auto& peer_group : line.peer_groups()) {
      EXPECT_TRUE(peer_group->failure().ok());
      withheld += peer_group->withheld();
    }
  }
  EXPECT_GT(withheld, 1000U);
}

TEST_P(FaultyPairs, ThatAreCutOffCanBeAbandoned) {
  std::uint64_t stuck = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Line line(*GetParam(), seed, {.seed = seed, .cut_after = seed % 30}, {.seed = seed});
    const bool ended = line.drive(1000);
    EXPECT_EQ(line.wrong() + line.refused(), 0U);
    for (const auto& peer_group : line.peer_groups())
      EXPECT_TRUE(peer_group->failure().ok()) << "silence is not an error of the medium";
    if (ended) continue;
    ++stuck;
    line.peer_groups()[0]->status().leave({6, 0});
    EXPECT_EQ(line.peer_groups()[1]->status().fate_of(0).reason, 6U);
    line.peer_groups()[1]->status().leave({6, 0});
    line.close_streams();
    for (const auto& member : line.members()) {
      member->close(0);
      EXPECT_EQ(member->leased(), 0U) << "an abandoned group keeps no memory";
    }
    const auto out = line.members()[0]->peer_group(1).open_pair_send(1).value();
    const auto in = line.members()[1]->peer_group(1).open_pair_receive(0).value();
    const MessageHeader header{4000, 1, 0};
    const PairPiece sent = out->acquire(header);
    ASSERT_EQ(sent.state, PairPiece::State::ready);
    write_pattern(sent.data, sent.size, seed);
    ASSERT_TRUE(out->commit());
    const PairPiece heard = in->front(header);
    ASSERT_EQ(heard.state, PairPiece::State::ready);
    EXPECT_TRUE(has_pattern(heard.data, heard.size, seed));
  }
  EXPECT_GT(stuck, 20U);
}

// Stray stores into headers cause an error that names the sender, or ends that disagree; never wrong bytes, never a crash.
TEST_P(FaultyPairs, RejectMalformedHeaders) {
  std::uint64_t damages = 0, found = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PeerGroupMember* sender = nullptr;
    std::uint64_t done = 0;
    Faults faults{.seed = seed};
    faults.garbage = [&](const Sent& sent, std::uint64_t random) {
      EXPECT_EQ(sent.way, Way::pair);
      if (random % 8 != 0) return;
      const PairDamage damage = kPairDamages[random / 8 % std::size(kPairDamages)];
      const std::uint64_t message = operation_of(sent.mark);
      const bool of_slots = damage == PairDamage::offset || damage == PairDamage::stride || damage == PairDamage::first;
      if (of_slots && header_of(seed, message).size <= 32) return;  // the field would hold the message itself
      ++damages;
      ++done;
      sender->damage(DamagedMessage{sent.receiver, message, damage, random >> 40});
    };
    Line line(*GetParam(), seed, faults, {.seed = seed});
    sender = line.members()[0].get();
    const bool ended = line.drive(1000);
    const Status reason = line.peer_groups()[1]->failure();
    if (!reason.ok()) {
      ++found;
      EXPECT_EQ(reason.code(), Code::remote_error);
      EXPECT_TRUE(reason.text().starts_with("member 0: ")) << reason.text();
    }
    refused += line.refused();
    EXPECT_EQ(line.wrong(), 0U);
    if (done == 0) {
      EXPECT_TRUE(ended && reason.ok());
    }
    EXPECT_TRUE(ended || !reason.ok()) << "the run hangs, and no group reports a failure";
  }
  EXPECT_GT(damages, 500U);
  EXPECT_GT(found, 100U);
  EXPECT_GT(refused, 50U);
}

INSTANTIATE_TEST_SUITE_P(All, FaultyPairs, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support

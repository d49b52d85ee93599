// The credit of messages between two members over TCP.

#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

// Empty messages use no payload bytes, but the receiver stores each, so their number has a limit too. The sender must wait at the
// limit: if the connection broke there, a correct program would fail.
TEST(TcpPairs, ASenderOfManyEmptyMessagesWaits) {
  constexpr std::uint64_t kMessages = 70'000;
  constexpr int kLooksWithoutProgress = 1'000;
  const auto members = tcp_transport(1).make({.members = 2});
  const auto sender = members[0]->peer_group().open_pair_send(1).value();
  const auto receiver = members[1]->peer_group().open_pair_receive(0).value();
  const auto send_one = [&] {
    const MessageHeader header{0, sender->current(), 0};
    return sender->acquire(header).state == PairPiece::State::ready && sender->commit();
  };
  // The receiver takes no message. Both ends read their sockets all the time.
  for (int looks = 0; sender->current() <= kMessages && looks < kLooksWithoutProgress;) {
    looks = send_one() ? 0 : looks + 1;
    (void)receiver->has_pending();
  }
  EXPECT_GT(sender->current(), 1'000U) << "many may be in flight";
  EXPECT_LE(sender->current(), 65'536U) << "but not all";
  ASSERT_TRUE(members[1]->peer_group().failure().ok()) << members[1]->peer_group().failure().text();

  EXPECT_TRUE(eventually([&] {
    if (sender->current() <= kMessages) (void)send_one();
    const MessageHeader expected{0, receiver->current(), 0};
    if (receiver->front(expected).state == PairPiece::State::ready) (void)receiver->release();
    return receiver->current() > kMessages || !members[1]->peer_group().failure().ok();
  }));
  EXPECT_EQ(receiver->current(), kMessages + 1);
  for (const auto& member : members) EXPECT_TRUE(member->peer_group().failure().ok()) << member->peer_group().failure().text();
}

}  // namespace
}  // namespace seto::support

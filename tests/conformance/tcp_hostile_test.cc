// A member of the job, which has proved that it knows the secret, sends what it should not. The memory that it can make this end
// use is bounded, and its connection breaks with a reason.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/flows.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kGroup = 77;
constexpr std::uint32_t kFarUs = 60'000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSockets = 2;  // of each link

class NoExchange final : public StatusExchange {
 public:
  void ask(std::uint32_t) override {}
  void announce() override {}
};

class NoSink final : public Sink {
 public:
  Result<std::byte*> place(std::uint32_t, const Frame&) override { return static_cast<std::byte*>(nullptr); }
  Status arrived(std::uint32_t, const Frame&, std::byte*) override { return {}; }
};

// Member 1 is a peer group, member 0 a bare link that sends any frames. Member 2 is another bare link, of an honest member.
struct Hostile {
  explicit Hostile(std::uint32_t ports = ports_of(2)) {
    domain = Domain::create().value();
    domain->hurry(true);
    PeerGroupSetup setup;
    setup.own = 1;
    setup.number = kGroup;
    setup.links.resize(3);
    attacker = connected(setup, 0);
    honest = connected(setup, 2);
    link = setup.links[0];
    honest_link = setup.links[2];
    setup.domain = domain.get();
    setup.exchange = &exchange;
    setup.ports = ports;
    group = TcpPeerGroup::create(std::move(setup)).value();
    pump();
  }

  std::unique_ptr<Link> connected(PeerGroupSetup& setup, std::uint32_t member) {
    Link::Setup theirs, ours;
    theirs.session = ours.session = Secret::random();
    theirs.round_trip_us = ours.round_trip_us = kFarUs;
    for (std::uint64_t i = 0; i < kSockets; ++i) {
      auto [one, other] = support::connected_over_loopback();
      theirs.sockets.push_back(std::move(one));
      ours.sockets.push_back(std::move(other));
    }
    setup.links[member] = domain->add(std::move(ours)).value();
    auto bare = std::make_unique<Link>(std::move(theirs));
    bare->enter(kGroup, sink, 1, member);
    return bare;
  }

  // Loopback has usually delivered what was written when the write returns.
  void pump() {
    while (attacker->flush() || honest->flush() || domain->pump()) {
    }
  }
  // The text with which the connection broke; empty: it did not.
  std::string sent(const Frame& frame, std::size_t payload = 0) { return sent_by(*attacker, *link, frame, payload); }
  std::string sent_honestly(const Frame& frame, std::size_t payload) { return sent_by(*honest, *honest_link, frame, payload); }
  std::string sent_by(Link& from, const Link& to, Frame frame, std::size_t payload) {
    frame.peer_group = kGroup;
    frame.length = static_cast<std::uint32_t>(payload);
    from.queue({frame, memory.data(), nullptr, nullptr});
    const std::uint64_t number = kSockets + ++(&to == link.get() ? frames_of_attacker : frames_of_honest);
    EXPECT_TRUE(support::eventually([&] {
      pump();
      return to.broken() || to.heard() >= number;
    }));
    return to.broken() ? std::string(to.why().text()) : std::string();
  }
  static Frame data(std::uint64_t operation, std::uint64_t slice, std::uint32_t size) {
    Frame frame;
    frame.set_kind(FrameKind::data);
    frame.mark = mark_of(operation, slice);
    frame.size = size;
    return frame;
  }

  const std::vector<std::byte> memory = std::vector<std::byte>(kFrameLimit);
  NoSink sink;
  NoExchange exchange;
  std::unique_ptr<Link> attacker, honest;
  std::unique_ptr<Domain> domain;
  std::shared_ptr<Link> link, honest_link;
  std::unique_ptr<TcpPeerGroup> group;
  std::uint64_t frames_of_attacker = 0, frames_of_honest = 0;  // sent, without the one that opens each socket
};

TEST(TcpHostile, StreamsThatNoPlanHasBreakTheConnection) {
  for (const FrameKind kind : {FrameKind::data, FrameKind::credit, FrameKind::window})
    for (const auto& [port, of_group] : {std::pair(ports_of(2), 0U), std::pair(0U, kMostGroups + 1)}) {
      Hostile peer;
      Frame frame = Hostile::data(1, 0, 0);
      frame.set_kind(kind);
      frame.port = static_cast<std::uint16_t>(ports_of(2) - 1);
      frame.group = static_cast<std::uint8_t>(kMostGroups);
      EXPECT_EQ(peer.sent(frame), "") << "the last stream that a plan may have";
      frame.port = static_cast<std::uint16_t>(port);
      frame.group = static_cast<std::uint8_t>(of_group);
      EXPECT_NE(peer.sent(frame).find("a stream that no plan has"), std::string::npos) << "kind " << static_cast<int>(kind);
    }
}

TEST(TcpHostile, StreamsThatNoPlanHasCannotBeOpenedHere) {
  Hostile peer;
  const std::vector<std::uint32_t> receivers{0};
  const auto port = static_cast<std::uint16_t>(ports_of(2));
  EXPECT_EQ(peer.group->open_send({1, 0, port}, receivers, {}).status().code(), Code::invalid_usage);
  EXPECT_EQ(peer.group->open_receive({0, 0, port}, {}).status().code(), Code::invalid_usage);
}

// The longer an operation is, the fewer of them a sender may begin ahead.
TEST(TcpHostile, OperationsFurtherAheadThanTheirLengthPermitsBreakTheConnection) {
  const std::pair<std::uint32_t, std::uint64_t> lengths[] = {
      {4 << 10, kMostOperations}, {512 << 10, 4}, {4 << 20, kLongOperations}, {5 << 20, kWindow}};
  for (const auto& [bytes, most] : lengths) {
    Hostile peer;
    EXPECT_EQ(peer.sent(Hostile::data(most, 0, bytes), 1), "") << bytes << " bytes";
    EXPECT_NE(peer.sent(Hostile::data(most + 1, 0, bytes), 1), "") << bytes << " bytes";
  }
}

// A context reserves the window of a far stream for two operations, so more of them must not fill it.
TEST(TcpHostile, NoMoreOperationsFillAWindowThanAreReserved) {
  Hostile peer;
  const auto receive = peer.group->open_receive({0, 0, 0}, {1 << 20, 2, 100, 0, 0}).value();
  const std::uint64_t reserved = peer.domain->windows().reserved();
  ASSERT_GT(reserved, 0U);
  const std::uint64_t window = reserved / kWindow + kStreamCredit;
  std::string why;
  std::uint64_t operation = 1;
  for (; why.empty() && operation <= kMostOperations; ++operation)
    for (std::uint64_t slice = 0; why.empty() && slice < window / kMiB; ++slice)
      why = peer.sent(Hostile::data(operation, slice, 1 << 20), 1);
  EXPECT_NE(why.find("further ahead"), std::string::npos) << why;
  EXPECT_EQ(operation, kWindow + 2) << "what the third operation has beyond 4 MiB was refused";
  EXPECT_LE(peer.domain->buffers().in_use(), kWindow * window + kStreamCredit);
}

// Before members had shares, two headers took all memory for received data, and the connection of the next member broke.
TEST(TcpHostile, HeadersOfLongMessagesTakeNoMemoryFromOtherMembers) {
  constexpr std::uint32_t kLimit = 64 << 20;
  for (const std::uint32_t size : {kLimit / 2, kLimit / 8}) {
    Hostile peer;
    peer.domain->buffers().set_limit(kLimit);
    std::string why;
    for (std::uint64_t slice = 0; why.empty() && slice < kMostAhead; ++slice) why = peer.sent(Hostile::data(1, slice, size), 1);
    EXPECT_NE(why.find("no memory"), std::string::npos) << why;
    for (std::uint64_t slice = 0; slice < 16; ++slice)
      ASSERT_EQ(peer.sent_honestly(Hostile::data(1, slice, 1 << 20), 1), "") << "slice " << slice;
    EXPECT_LE(peer.domain->buffers().in_use(), kLimit);
  }
}

// Members that have three quarters of the memory in flight together are not hostile.
TEST(TcpHostile, LongMessagesOfSeveralMembersFitTogether) {
  constexpr std::uint32_t kLimit = 64 << 20;
  Hostile peer;
  peer.domain->buffers().set_limit(kLimit);
  for (std::uint64_t slice = 0; slice < 3; ++slice) {
    EXPECT_EQ(peer.sent(Hostile::data(1, slice, kLimit / 8), 1), "") << "slice " << slice;
    EXPECT_EQ(peer.sent_honestly(Hostile::data(1, slice, kLimit / 8), 1), "") << "slice " << slice;
  }
  EXPECT_EQ(peer.domain->buffers().in_use(), 6 * kLimit / 8);
}

// Every message without bytes is remembered: streams, their operations and their tables count.
TEST(TcpHostile, EmptyMessagesOnEveryStreamUseNoMoreThanTheShareOfTheirSender) {
  constexpr std::size_t kLimit = 1 << 20;
  Hostile peer;
  peer.domain->buffers().set_limit(kLimit);
  std::string why;
  for (std::uint64_t slice = 0; why.empty() && slice < kMostAheadFar; ++slice)
    for (std::uint64_t operation = 1; why.empty() && operation <= kMostOperations; ++operation)
      for (std::uint32_t stream = 0; why.empty() && stream < kMostGroups; ++stream) {
        Frame frame = Hostile::data(operation, slice, 0);
        frame.group = static_cast<std::uint8_t>(stream);
        why = peer.sent(frame);
        ASSERT_LE(peer.link->share().in_use(), kLimit / 2) << "operation " << operation;
      }
  EXPECT_NE(why.find("no memory"), std::string::npos) << why;
  EXPECT_EQ(peer.sent_honestly(Hostile::data(1, 0, kLimit / 4), 1), "");
}

// A member may announce credit for every stream of every port, and refuse messages that never come. Without a charge the
// second test used 5 MiB for each member that did so.
TEST(TcpHostile, CreditForEveryStreamIsChargedToTheShareOfItsSender) {
  for (const FrameKind kind : {FrameKind::credit, FrameKind::window}) {
    constexpr std::size_t kLimit = 1 << 20;
    constexpr std::uint32_t kPorts = 2'000;
    Hostile peer(kPorts);
    peer.domain->buffers().set_limit(kLimit);
    Frame frame;
    frame.set_kind(kind);
    frame.mark = mark_of(1, 1);
    ASSERT_EQ(peer.sent(frame), "");
    const std::size_t of_one = peer.link->share().in_use();
    EXPECT_GT(of_one, 16 * kMostOperations);
    ASSERT_EQ(peer.sent(frame), "");
    EXPECT_EQ(peer.link->share().in_use(), of_one) << "the same stream again";
    std::string why;
    for (std::uint32_t port = 1; why.empty() && port < kPorts; ++port) {
      frame.port = static_cast<std::uint16_t>(port);
      why = peer.sent(frame);
      ASSERT_LE(peer.link->share().in_use(), kLimit / 2 + kLimit / 4);
    }
    EXPECT_NE(why.find("no memory"), std::string::npos) << why;
    EXPECT_EQ(peer.sent_honestly(Hostile::data(1, 0, kLimit / 8), 1), "");
    peer.group.reset();
    EXPECT_EQ(peer.link->share().in_use(), 0U);
  }
}

TEST(TcpHostile, RefusalsAreChargedUntilTheSenderHasReadThem) {
  constexpr std::size_t kLimit = 1 << 20;
  Hostile peer;
  peer.domain->buffers().set_limit(kLimit);
  Frame frame;
  frame.set_kind(FrameKind::pair_refused);
  frame.mark = 1;
  ASSERT_EQ(peer.sent(frame, kMessageHeaderSize), "");
  const std::size_t of_one = peer.link->share().in_use();
  EXPECT_GE(of_one, sizeof(MessageHeader));
  ASSERT_EQ(peer.sent(frame, kMessageHeaderSize), "");
  EXPECT_EQ(peer.link->share().in_use(), of_one) << "the same message again";
  frame.mark = 2;
  ASSERT_EQ(peer.sent(frame, kMessageHeaderSize), "");
  EXPECT_EQ(peer.link->share().in_use(), 2 * of_one);
  const auto sender = peer.group->open_pair_send(0).value();
  EXPECT_EQ(sender->acquire({}).state, PairPiece::State::refused);
  EXPECT_EQ(peer.link->share().in_use(), of_one);
  std::string why;
  for (std::uint64_t message = 3; why.empty() && message < 65'000; ++message) {
    frame.mark = message;
    why = peer.sent(frame, kMessageHeaderSize);
  }
  EXPECT_NE(why.find("no memory"), std::string::npos) << why;
}

// The part at offset 0 is still on its way over another socket when the operation ends with a failure.
TEST(TcpHostile, PartsOfAnEndedOperationReturnTheirMemoryThoughTheFirstPartNeverCame) {
  Hostile peer;
  Frame second = Hostile::data(1, 0, 2 * kStripe);
  second.offset = kStripe;
  ASSERT_EQ(peer.sent(second, kStripe), "");
  EXPECT_GE(peer.domain->buffers().in_use(), 2 * kStripe);
  peer.group->disregard(1);
  peer.group->complete(1);
  EXPECT_EQ(peer.domain->buffers().in_use(), 0U);
  EXPECT_TRUE(peer.group->failure().ok()) << "its call failed here for another reason";
}

// Sends one more frame for each that arrives: there is always input.
class Echo final : public Sink {
 public:
  explicit Echo(Hostile& peer) : peer_(peer) {}
  Result<std::byte*> place(std::uint32_t, const Frame&) override { return static_cast<std::byte*>(nullptr); }
  Status arrived(std::uint32_t, const Frame&, std::byte*) override {
    if (++frames < kEnough) send();
    return {};
  }
  void send() {
    Frame frame = Hostile::data(1, 0, 0);
    frame.peer_group = kGroup + 1;
    peer_.attacker->queue({frame, nullptr, nullptr, nullptr});
    (void)peer_.attacker->flush();
  }

  static constexpr int kEnough = 10'000;
  int frames = 0;

 private:
  Hostile& peer_;
};

TEST(TcpHostile, APeerThatKeepsSendingDoesNotDelayTheEndOfItsConnection) {
  Hostile peer;
  Echo echo(peer);
  peer.attacker->enter(kGroup + 1, peer.sink, 1, 0);
  peer.link->enter(kGroup + 1, echo, 0, 1);
  peer.pump();
  echo.send();
  peer.link->give_up();
  EXPECT_TRUE(peer.link->look_after());
  EXPECT_GE(echo.frames, 1) << "what was there is read";
  EXPECT_LT(echo.frames, 100);
  peer.link->leave(kGroup + 1);
}

// The time that Link::look_after() sees.
std::uint64_t now_ns = 0;

TEST(TcpHalfClosed, ALinkEndsTwoSecondsAfterTheLastByteOfTheOpenSockets) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto clock = [] { return now_ns; };
  Link::Setup setup;
  setup.session = Secret::random();
  std::vector<PrivateFd> peer;
  for (int i = 0; i < 2; ++i) {
    auto [one, other] = support::connected_over_loopback();
    setup.sockets.push_back(std::move(one));
    peer.push_back(std::move(other));
  }
  Link link(std::move(setup));
  now_ns = 10 * kSecond;
  EXPECT_FALSE(link.look_after(clock));
  peer[0].close();
  ASSERT_TRUE(support::eventually([&] { return link.receive(); }));
  EXPECT_FALSE(link.look_after(clock));
  for (int bytes = 0; bytes < 5; ++bytes) {  // of a header that is never complete
    now_ns += 19 * kSecond / 10;
    ASSERT_EQ(send(peer[1].get(), "x", 1, MSG_NOSIGNAL), 1);
    ASSERT_TRUE(support::eventually([&] { return link.receive(); }));
    ASSERT_FALSE(link.look_after(clock)) << "it still delivers";
  }
  now_ns += 19 * kSecond / 10;
  EXPECT_FALSE(link.look_after(clock));
  now_ns += 2 * kSecond / 10;
  EXPECT_TRUE(link.look_after(clock));
  EXPECT_TRUE(link.broken());
}

}  // namespace
}  // namespace seto::tcp

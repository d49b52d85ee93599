// How a connection spreads its frames over several sockets. The test reads the sockets of the peer itself.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kPeerGroup = 77;
constexpr int kPatienceMs = 20'000;

class NoSink final : public Sink {
 public:
  Result<std::byte*> place(std::uint32_t, const Frame&) override { return static_cast<std::byte*>(nullptr); }
  Status arrived(std::uint32_t, const Frame&, std::byte*) override { return {}; }
};

// A connection of several sockets, and the other ends of them.
struct Striped {
  explicit Striped(std::size_t sockets) {
    Link::Setup setup;
    setup.session = Secret::random();
    for (std::size_t i = 0; i < sockets; ++i) {
      auto [one, other] = support::connected_over_loopback();
      setup.sockets.push_back(std::move(one));
      peer.push_back(std::move(other));
    }
    link = std::make_unique<Link>(std::move(setup));
    link->enter(kPeerGroup, sink, 1, 0);
  }

  void queue(const std::vector<std::byte>& payload) {
    Frame frame;
    frame.set_kind(FrameKind::data);
    frame.peer_group = kPeerGroup;
    frame.length = static_cast<std::uint32_t>(payload.size());
    link->queue({frame, payload.data(), nullptr, nullptr});
  }

  NoSink sink;
  std::vector<PrivateFd> peer;
  std::unique_ptr<Link> link;
};

// The headers of the frames that a socket delivers.
class Headers final {
 public:
  // Reads what is there. Returns the number of bytes.
  std::size_t read(int fd) {
    std::array<std::byte, 65'536> bytes;
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return 0;
    for (ssize_t at = 0; at < got;) {
      const std::size_t left = static_cast<std::size_t>(got - at);
      if (payload_ > 0) {
        const std::size_t skipped = std::min<std::size_t>(payload_, left);
        payload_ -= skipped;
        at += static_cast<ssize_t>(skipped);
        continue;
      }
      const std::size_t part = std::min(sizeof(Frame) - have_, left);
      std::memcpy(reinterpret_cast<std::byte*>(&next_) + have_, bytes.data() + at, part);
      have_ += part;
      at += static_cast<ssize_t>(part);
      if (have_ < sizeof(Frame)) continue;
      frames.push_back(next_);
      payload_ = next_.length;
      have_ = 0;
    }
    return static_cast<std::size_t>(got);
  }

  std::vector<Frame> frames;

 private:
  Frame next_;
  std::size_t have_ = 0;
  std::size_t payload_ = 0;
};

TEST(TcpStriping, EachSocketOpensTheCommunicatorBeforeItCarriesItsFrames) {
  Striped striped(4);
  const std::vector<std::byte> payload(striped.link->frame_size());
  for (int i = 0; i < 16; ++i) striped.queue(payload);
  std::array<Headers, 4> headers;
  const Deadline until = Deadline::after_ms(kPatienceMs);
  for (std::size_t frames = 0; frames < 16 + 4;) {
    ASSERT_FALSE(until.passed()) << frames << " frames arrived";
    striped.link->flush();
    frames = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      headers[i].read(striped.peer[i].get());
      frames += headers[i].frames.size();
    }
  }
  for (const Headers& each : headers) {
    ASSERT_FALSE(each.frames.empty());
    EXPECT_EQ(each.frames.front().kind(), FrameKind::open);
    for (std::size_t i = 1; i < each.frames.size(); ++i) EXPECT_EQ(each.frames[i].kind(), FrameKind::data);
  }
}

// Before a limit of unsent bytes the first socket took all of it: the kernel has room for some megabytes.
TEST(TcpStriping, FramesSpreadOverAllSockets) {
  constexpr std::size_t kSockets = 4;
  constexpr int kFrames = 32;
  Striped striped(kSockets);
  const std::vector<std::byte> payload(striped.link->frame_size());
  for (int i = 0; i < kFrames; ++i) striped.queue(payload);
  std::array<Headers, kSockets> headers;
  const Deadline until = Deadline::after_ms(kPatienceMs);
  striped.link->flush();
  for (std::size_t frames = 0; frames < kFrames + kSockets;) {
    ASSERT_FALSE(until.passed()) << frames << " frames arrived";
    frames = 0;
    for (std::size_t i = 0; i < kSockets; ++i) {
      headers[i].read(striped.peer[i].get());
      frames += headers[i].frames.size();
    }
    striped.link->flush();
  }
  for (const Headers& each : headers) {
    EXPECT_GT(each.frames.size(), kFrames / kSockets / 2);
    EXPECT_LT(each.frames.size(), kFrames / 2);
  }
}

// The first socket is not read: the frames that it has taken do not arrive, and all others do.
TEST(TcpStriping, ASocketThatStandsStillHoldsUpOnlyWhatItHasTaken) {
  constexpr std::size_t kSockets = 3;
  constexpr std::size_t kFrames = 1'000;  // 65 MB
  constexpr std::size_t kTaken = 300;     // 20 MB: more than the kernel keeps for a socket and its receiver
  Striped striped(kSockets);
  const std::vector<std::byte> payload(striped.link->frame_size());
  for (std::size_t i = 0; i < kFrames; ++i) striped.queue(payload);
  std::array<Headers, kSockets> headers;
  const Deadline until = Deadline::after_ms(kPatienceMs);
  const auto read_from = [&](std::size_t first) {
    striped.link->flush();
    std::size_t arrived = 0;
    for (std::size_t i = first; i < kSockets; ++i) {
      while (headers[i].read(striped.peer[i].get()) > 0) {
      }
      arrived += headers[i].frames.size();
    }
    return arrived;
  };
  for (std::size_t arrived = 0; arrived < kFrames - kTaken; arrived = read_from(1))
    ASSERT_FALSE(until.passed()) << arrived << " frames arrived";
  EXPECT_TRUE(headers[0].frames.empty());
  for (std::size_t arrived = 0; arrived < kFrames + kSockets || striped.link->has_output(); arrived = read_from(0))
    ASSERT_FALSE(until.passed()) << arrived << " frames arrived after the first socket was read, too";
  EXPECT_GT(headers[0].frames.size(), 1U) << "the first socket took no frame";
}

// Frames without payload: waits until so many of them have arrived at the peer, and then until nothing moves any more. Returns
// how many have arrived.
std::uint64_t arrive_of(Striped& striped, std::array<Headers, 2>& headers, std::uint64_t wanted) {
  const Deadline until = Deadline::after_ms(kPatienceMs);
  std::uint64_t arrived = 0;
  const auto read = [&] {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < 2; ++i) bytes += headers[i].read(striped.peer[i].get());
    return bytes;
  };
  for (int quiet = 0; (quiet < 100 || arrived < wanted) && !until.passed();) {
    const bool moved = striped.link->flush();
    quiet = read() > 0 || moved ? 0 : quiet + 1;
    arrived = headers[0].frames.size() + headers[1].frames.size() - 2;  // without the two openings
  }
  return arrived;
}

// A frame of the peer that only acknowledges.
void acknowledge(Striped& striped, std::uint64_t frames) {
  resume::Heard heard;
  heard.all_up_to = frames;
  resume::HeardBytes bytes;
  Frame frame;
  frame.set_kind(FrameKind::heard);
  frame.length = static_cast<std::uint32_t>(encode(heard, bytes));
  ASSERT_EQ(send(striped.peer[0].get(), &frame, sizeof frame, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof frame));
  ASSERT_EQ(send(striped.peer[0].get(), bytes.data(), frame.length, MSG_NOSIGNAL), static_cast<ssize_t>(frame.length));
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (!striped.link->receive() && !until.passed()) (void)poll(nullptr, 0, 1);
}

// Otherwise a socket that stands still would let the others run so far ahead that the receiver cannot remember which frames came.
TEST(TcpStriping, ASenderStopsWhileTooManyFramesAreUnacknowledged) {
  constexpr std::uint64_t kMost = 98'304, kQueued = 150'000;
  Striped striped(2);
  for (std::uint64_t i = 0; i < kQueued; ++i) striped.queue({});
  std::array<Headers, 2> headers;
  EXPECT_EQ(arrive_of(striped, headers, kMost - 2), kMost - 2) << "the openings count, too";
  acknowledge(striped, 10'000);
  EXPECT_EQ(arrive_of(striped, headers, kMost - 2 + 10'000), kMost - 2 + 10'000);
  acknowledge(striped, kMost);
  EXPECT_EQ(arrive_of(striped, headers, kQueued), kQueued);
  EXPECT_FALSE(striped.link->broken());
}

TEST(TcpStriping, UrgentFramesStopLater) {
  constexpr std::uint64_t kMost = 130'048;
  Striped striped(2);
  Frame frame;
  frame.set_kind(FrameKind::progress);
  frame.peer_group = kPeerGroup;
  std::array<Headers, 2> headers;
  std::uint64_t arrived = 0;
  for (std::uint64_t queued = 0; queued < 150'000; queued += 30'000) {
    for (int i = 0; i < 30'000; ++i) striped.link->queue_urgent(frame);
    arrived = arrive_of(striped, headers, std::min(queued + 30'000, kMost - 2));
  }
  EXPECT_EQ(arrived, kMost - 2) << "the openings count, too";
  acknowledge(striped, kMost);
  EXPECT_EQ(arrive_of(striped, headers, 150'000), 150'000U);
  EXPECT_FALSE(striped.link->broken());
}

TEST(TcpStriping, AnAcknowledgementOfFramesThatWereNotSentIsMalformed) {
  Striped striped(2);
  striped.queue({});
  std::array<Headers, 2> headers;
  ASSERT_EQ(arrive_of(striped, headers, 1), 1U);
  acknowledge(striped, 4);
  EXPECT_TRUE(striped.link->broken());
  EXPECT_NE(striped.link->why().text().find("not sent"), std::string_view::npos) << striped.link->why().text();
}

// A receiver that has nothing to send acknowledges all the same.
TEST(TcpStriping, AReceiverThatOnlyReceivesAcknowledges) {
  constexpr std::uint64_t kQueued = 250'000;
  Link::Setup of_sender, of_receiver;
  of_sender.session = of_receiver.session = Secret::random();
  for (int i = 0; i < 2; ++i) {
    auto [one, other] = support::connected_over_loopback();
    of_sender.sockets.push_back(std::move(one));
    of_receiver.sockets.push_back(std::move(other));
  }
  NoSink sink;
  Link sender(std::move(of_sender)), receiver(std::move(of_receiver));
  sender.enter(kPeerGroup, sink, 1, 0);
  Frame frame;
  frame.set_kind(FrameKind::progress);
  frame.peer_group = kPeerGroup;
  for (std::uint64_t i = 0; i < kQueued; ++i) sender.queue({frame, nullptr, nullptr, nullptr});
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (receiver.heard() < kQueued + 2 && !until.passed()) {
    for (Link* const each : {&sender, &receiver}) {
      each->flush();
      each->receive();
    }
  }
  EXPECT_EQ(receiver.heard(), kQueued + 2);
  EXPECT_FALSE(sender.broken()) << sender.why().text();
}

}  // namespace
}  // namespace seto::tcp

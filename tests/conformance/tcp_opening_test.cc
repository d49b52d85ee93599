// Links that begin without sockets: what waits, what has the sockets opened, and what the peer gets once they are open.

#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/flows.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kGroup = 5;

class Opener final : public LinkOpener {
 public:
  Status need() override {
    ++needs;
    return outcome;
  }
  void give_up() override { ++given_up; }

  Status outcome;
  int needs = 0;
  int given_up = 0;
};

class Frames final : public Sink {
 public:
  Result<std::byte*> place(std::uint32_t, const Frame&) override { return static_cast<std::byte*>(nullptr); }
  Status arrived(std::uint32_t, const Frame& frame, std::byte*) override {
    marks.push_back(frame.mark);
    return {};
  }
  std::vector<std::uint64_t> marks;
};

// From the kernel.
std::size_t watched_by(const Domain& domain) {
  std::ifstream lines("/proc/self/fdinfo/" + std::to_string(domain.descriptor()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with("tfd:") ? 1 : 0;
  return count;
}

Frame frame_with(std::uint64_t mark, std::uint64_t group = kGroup) {
  Frame frame;
  frame.set_kind(FrameKind::progress);
  frame.peer_group = group;
  frame.mark = mark;
  return frame;
}

// Two ends of a link that has no sockets yet. All calls come from the thread of the test.
class Opening : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<Domain> domain = Domain::create().value();
    std::shared_ptr<Opener> opener = std::make_shared<Opener>();
    Frames frames;
    std::shared_ptr<Link> link;

    void queue(std::uint64_t mark, std::uint64_t group = kGroup) {
      const std::lock_guard lock(domain->lock());
      link->queue({frame_with(mark, group), nullptr, nullptr, nullptr});
    }
    void enter(std::uint32_t own, std::uint64_t group = kGroup) {
      const std::lock_guard lock(domain->lock());
      link->enter(group, frames, 1 - own, own);
    }
    void leave(std::uint64_t group = kGroup) {
      const std::lock_guard lock(domain->lock());
      link->leave(group);
    }
    void open(std::vector<SecureStream> sockets) {
      const std::lock_guard lock(domain->lock());
      EXPECT_TRUE(domain->open(*link, std::move(sockets)).ok());
    }
    [[nodiscard]] bool delivered() {
      const std::lock_guard lock(domain->lock());
      return link->delivered();
    }
  };

  void SetUp() override { make_ends(0); }
  void make_ends(std::uint32_t round_trip_us) {
    const Secret session = Secret::random();
    for (End& end : ends_) {
      Link::Setup setup;
      setup.session = session;
      setup.round_trip_us = round_trip_us;
      setup.opener = end.opener;
      end.link = end.domain->add(std::move(setup)).value();
      end.domain->hurry(true);
    }
  }
  void TearDown() override {
    for (End& end : ends_) end.leave();
  }
  void open_both(std::size_t sockets) {
    std::vector<SecureStream> of_a;
    std::vector<SecureStream> of_b;
    for (std::size_t i = 0; i < sockets; ++i) {
      auto [one, other] = support::connected_over_loopback();
      of_a.push_back(std::move(one));
      of_b.push_back(std::move(other));
    }
    a_.open(std::move(of_a));
    b_.open(std::move(of_b));
  }
  template <class Condition>
  bool pump_until(const Condition& condition) {
    return support::eventually([&] {
      a_.domain->pump();
      b_.domain->pump();
      return condition();
    });
  }

  End ends_[2];
  End& a_ = ends_[0];
  End& b_ = ends_[1];
};

TEST_F(Opening, TheFirstDataAsksForSocketsAndWaitsForThem) {
  for (const std::size_t sockets : {std::size_t{1}, std::size_t{3}}) {
    SetUp();
    a_.enter(0);
    b_.enter(1);
    EXPECT_EQ(a_.opener->needs, 0);
    EXPECT_TRUE(a_.delivered()) << "nothing waits";
    for (std::uint64_t mark = 1; mark <= 3; ++mark) a_.queue(mark);
    EXPECT_EQ(a_.opener->needs, 1);
    EXPECT_FALSE(a_.domain->unsent()) << "no thread is to pump";
    EXPECT_FALSE(a_.domain->pump());
    EXPECT_FALSE(a_.delivered());
    open_both(sockets);
    EXPECT_TRUE(a_.domain->unsent());
    EXPECT_TRUE(pump_until([&] { return b_.frames.marks.size() == 3; }));
    EXPECT_TRUE(pump_until([&] { return a_.delivered(); }));
    EXPECT_EQ(b_.opener->needs, 0) << "it only received";
    b_.queue(9);
    EXPECT_EQ(b_.opener->needs, 1) << "the peer must know before any later status record";
    EXPECT_TRUE(pump_until([&] { return a_.frames.marks.size() == 1; }));
    for (End& end : ends_) {
      end.leave();
      end.frames.marks.clear();
      end.opener = std::make_shared<Opener>();
    }
  }
}

TEST_F(Opening, UrgentFramesOpenNothingAndGoFirst) {
  a_.enter(0);
  b_.enter(1);
  {
    const std::lock_guard lock(a_.domain->lock());
    a_.link->queue_urgent(frame_with(1));
  }
  EXPECT_EQ(a_.opener->needs, 0);
  EXPECT_TRUE(a_.delivered()) << "no data waits, so a domain does not wait for sockets either";
  b_.queue(2);
  open_both(1);
  EXPECT_TRUE(pump_until([&] { return a_.frames.marks.size() == 1 && b_.frames.marks.size() == 1; }));
}

// Both have left it by the time the sockets are open; the receiver reads the frames and drops them.
TEST_F(Opening, FramesOfACommunicatorThatHasEndedHaveTheirOpening) {
  a_.enter(0);
  b_.enter(1);
  a_.queue(1);
  a_.leave();
  b_.leave();
  a_.enter(0, kGroup + 1);
  b_.enter(1, kGroup + 1);
  a_.queue(2, kGroup + 1);
  open_both(2);
  EXPECT_TRUE(pump_until([&] { return b_.frames.marks.size() == 1; }));
  EXPECT_FALSE(b_.link->broken()) << b_.link->why().text();
  a_.leave(kGroup + 1);
  b_.leave(kGroup + 1);
}

// Its window, say, must not reach a peer that was not told of the communicator.
TEST_F(Opening, UrgentFramesOfACommunicatorEndWithIt) {
  a_.enter(0);
  {
    const std::lock_guard lock(a_.domain->lock());
    a_.link->queue_urgent(frame_with(1));
  }
  a_.leave();
  a_.enter(0, kGroup + 1);
  b_.enter(1, kGroup + 1);
  a_.queue(2, kGroup + 1);
  open_both(1);
  EXPECT_TRUE(pump_until([&] { return b_.frames.marks.size() == 1 || b_.link->broken(); }));
  EXPECT_FALSE(b_.link->broken()) << b_.link->why().text();
  a_.leave(kGroup + 1);
  b_.leave(kGroup + 1);
}

TEST_F(Opening, ABrokenLinkTakesNoSockets) {
  a_.queue(1);
  {
    const std::lock_guard lock(a_.domain->lock());
    a_.link->break_with(failure(Code::remote_error, "no way"));
  }
  EXPECT_EQ(a_.opener->given_up, 1);
  EXPECT_TRUE(a_.delivered()) << "nothing will be";
  open_both(1);
  EXPECT_FALSE(a_.link->open());
  EXPECT_TRUE(pump_until([&] { return b_.link->broken(); })) << "its socket was closed";
}

TEST_F(Opening, ALostProcessBreaksALinkWithoutSockets) {
  a_.queue(1);
  a_.link->give_up();
  EXPECT_TRUE(a_.domain->pump());
  EXPECT_TRUE(a_.link->broken());
  EXPECT_EQ(a_.link->why().text(), "its process is lost");
}

// The timer, the sampler and the limit of a far link depend on its sockets, and are made with them.
TEST_F(Opening, AFarLinkIsCompleteWhenItHasItsSockets) {
  make_ends(60'000);
  a_.enter(0);
  b_.enter(1);
  a_.queue(1);
  EXPECT_EQ(watched_by(*a_.domain), 0U);
  open_both(3);
  EXPECT_EQ(watched_by(*a_.domain), 4U) << "three sockets and a timer";
  EXPECT_TRUE(pump_until([&] { return b_.frames.marks.size() == 1; }));
}

// The thread that opens sockets does not hold the token of the context, and the holder looks at messages without a lock.
TEST_F(Opening, BytesThatCameWithTheHandshakeAreReadByWhoPumps) {
  auto [of_a, of_b] = support::connected_over_loopback();
  SecureStream a = std::move(of_a);
  SecureStream b = std::move(of_b);
  const Secret key = Secret::random();
  ASSERT_TRUE(a.encrypt(TlsSession::Role::caller, key).ok() && b.encrypt(TlsSession::Role::answerer, key).ok());
  ASSERT_TRUE(support::eventually([&] { return a.advance().value() || (b.advance().value(), false); }));
  a_.enter(0);
  b_.enter(1);
  a_.queue(7);
  std::vector<SecureStream> sockets;
  sockets.push_back(std::move(a));
  a_.open(std::move(sockets));
  ASSERT_TRUE(support::eventually([&] { return !a_.domain->unsent() || (a_.domain->pump(), false); }));
  ASSERT_TRUE(support::eventually([&] { return b.advance().value(); }));
  sockets.clear();
  sockets.push_back(std::move(b));
  b_.open(std::move(sockets));
  EXPECT_TRUE(b_.frames.marks.empty());
  pollfd event{b_.domain->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1) << "a sleeping holder of the token is woken";
  b_.domain->pump();
  EXPECT_EQ(b_.frames.marks, std::vector<std::uint64_t>{7});
  b_.domain->prepare_to_sleep();
  EXPECT_EQ(poll(&event, 1, 0), 0);
}

TEST_F(Opening, AnOpenerThatCannotAskBreaksTheLink) {
  a_.opener->outcome = failure(Code::unavailable, "no thread");
  a_.queue(1);
  EXPECT_TRUE(a_.link->broken());
  EXPECT_EQ(a_.link->why().text(), "no thread");
}

}  // namespace
}  // namespace seto::tcp

// A link of several sockets whose paths break: what arrives, and when the link ends. The test carries the bytes of each path
// itself, so it decides which of them arrive.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/flows.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kGroup = 7;
constexpr std::size_t kPaths = 3;

class Dialer final : public PathDialer {
 public:
  void paths_broke() override { ++breaks; }
  void give_up() override { ++given_up; }
  int breaks = 0, given_up = 0;
};

// Keeps each payload in memory of its own, which it frees when the frame has come: a copy that is written later is an error that
// a sanitizer finds.
class Frames final : public Sink {
 public:
  Result<std::byte*> place(std::uint32_t, const Frame& frame) override {
    EXPECT_EQ(half_.count(frame.mark), 0U) << "it was placed twice";
    auto& memory = half_[frame.mark] = std::make_unique<std::byte[]>(frame.length);
    return memory.get();
  }
  Status arrived(std::uint32_t, const Frame& frame, std::byte* at) override {
    EXPECT_EQ(half_[frame.mark].get(), at);
    EXPECT_EQ(whole.count(frame.mark), 0U) << "it came twice";
    whole[frame.mark].assign(reinterpret_cast<const char*>(at), frame.length);
    half_.erase(frame.mark);
    return {};
  }
  void unplace(std::uint32_t, const Frame& frame, std::byte* at) override {
    EXPECT_EQ(half_[frame.mark].get(), at);
    half_.erase(frame.mark);
    ++unplaced;
  }
  std::map<std::uint64_t, std::string> whole;  // by mark
  int unplaced = 0;

 private:
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> half_;
};

// A buffer of a caller.
struct Buffer {
  explicit Buffer(std::size_t size) : bytes(size) {}
  std::vector<std::byte> bytes;
  Unwritten unwritten{0};
  resume::Lender lender;
};

struct End {
  std::unique_ptr<Domain> domain = Domain::create().value();
  std::shared_ptr<Dialer> dialer = std::make_shared<Dialer>();
  Frames frames;
  std::shared_ptr<Link> link;
};

class TcpPaths : public ::testing::Test {
 protected:
  ~TcpPaths() override {
    for (End& end : ends_) {
      if (end.link == nullptr) continue;
      const std::lock_guard lock(end.domain->lock());
      end.link->leave(kGroup);
    }
    for (End& end : ends_) end.domain->hurry(true);
  }

  void connect(bool dials, std::uint64_t patience_ms = 60'000, std::uint32_t round_trip_us = 0) {
    Link::Setup setups[2];
    setups[0].session = setups[1].session = Secret::random();
    for (std::size_t path = 0; path < kPaths; ++path)
      for (std::size_t end = 0; end < 2; ++end) {
        auto [one, other] = support::connected_over_loopback();
        setups[end].sockets.emplace_back(std::move(one));
        wires_[path].ends[end] = std::move(other);
      }
    for (std::size_t end = 0; end < 2; ++end) {
      setups[end].continues = true;
      setups[end].patience_ms = patience_ms;
      setups[end].round_trip_us = round_trip_us;
      if (dials) setups[end].dialer = ends_[end].dialer;
      ends_[end].link = ends_[end].domain->add(std::move(setups[end])).value();
      const std::lock_guard lock(ends_[end].domain->lock());
      ends_[end].link->enter(kGroup, ends_[end].frames, 0, 0);
    }
  }
  // Moves at most so many bytes of a path in the direction to that end.
  std::size_t carry(std::size_t path, std::size_t to, std::size_t most) {
    Wire& wire = wires_[path];
    if (wire.ends[0].get() < 0) return 0;
    std::vector<char> bytes(std::min<std::size_t>(most, 64 << 10));
    const ssize_t got = recv(wire.ends[1 - to].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return 0;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t some = send(wire.ends[to].get(), bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (some < 0 && errno == EAGAIN) {
        ends_[to].domain->pump();  // makes room
        continue;
      }
      if (some < 0) break;
      sent += some;
    }
    return static_cast<std::size_t>(got);
  }
  void pump() {
    for (End& end : ends_) end.domain->pump();
  }
  // Both directions of all paths but those that are held.
  template <class Condition>
  bool run_until(const Condition& condition) {
    return support::eventually([&] {
      pump();
      for (std::size_t path = 0; path < kPaths; ++path)
        for (std::size_t to = 0; to < 2; ++to)
          if (!held_[path]) carry(path, to, 64 << 10);
      return condition();
    });
  }
  // The bytes that are on their way are lost.
  void cut(std::size_t path) {
    for (PrivateFd& end : wires_[path].ends) {
      const linger at_once{1, 0};
      (void)setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      end = PrivateFd();
    }
  }
  void renew(std::size_t path) {
    ++attempt_;
    for (std::size_t end = 0; end < 2; ++end) {
      auto [one, other] = support::connected_over_loopback();
      wires_[path].ends[end] = std::move(other);
      const std::lock_guard lock(ends_[end].domain->lock());
      ends_[end].domain->take_path(*ends_[end].link, path, SecureStream(std::move(one)), attempt_);
    }
  }
  // Frames of random sizes from one buffer. Returns what they hold, by mark.
  std::map<std::uint64_t, std::string> queue(std::size_t from, const std::shared_ptr<Buffer>& buffer, std::size_t most) {
    std::map<std::uint64_t, std::string> expected;
    const std::lock_guard lock(ends_[from].domain->lock());
    for (std::byte& each : buffer->bytes) each = static_cast<std::byte>(random_());
    for (std::size_t at = 0; at < buffer->bytes.size();) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = kGroup;
      frame.mark = ++mark_;
      frame.length = static_cast<std::uint32_t>(std::min(random_() % most, buffer->bytes.size() - at));
      const std::byte* const data = buffer->bytes.data() + at;
      ends_[from].link->queue({frame, data, {buffer, &buffer->lender}, &buffer->unwritten});
      expected[mark_].assign(reinterpret_cast<const char*>(data), frame.length);
      at += frame.length;
    }
    return expected;
  }
  // The caller has its buffer back and writes over it.
  void overwrite(std::size_t from, const std::shared_ptr<Buffer>& buffer) {
    const std::lock_guard lock(ends_[from].domain->lock());
    ASSERT_TRUE(ends_[from].link->give_back(buffer->lender));
    ASSERT_FALSE(buffer->lender.needed());
    std::fill(buffer->bytes.begin(), buffer->bytes.end(), std::byte{0xee});
  }
  [[nodiscard]] std::string why() const { return ends_[0].link->broken() ? std::string(ends_[0].link->why().text()) : ""; }

  struct Wire {
    PrivateFd ends[2];
  };
  End ends_[2];
  Wire wires_[kPaths];
  bool held_[kPaths] = {};
  std::uint32_t attempt_ = 0;
  std::uint64_t mark_ = 0;
  std::mt19937_64 random_{testing::chosen_seed()};
};

TEST_F(TcpPaths, WhatABrokenPathHasTakenComesOverOthersThoughTheBufferIsWrittenOver) {
  connect(false);
  held_[1] = true;
  const auto buffer = std::make_shared<Buffer>(1 << 20);
  const auto expected = queue(0, buffer, 60'000);
  ASSERT_TRUE(run_until([&] { return !ends_[0].link->has_output() && ends_[1].frames.whole.size() > expected.size() / 2; }));
  EXPECT_LT(ends_[1].frames.whole.size(), expected.size()) << "the held path took some";
  overwrite(0, buffer);
  carry(1, 1, 1'000);  // the opening, and a part of a frame
  pump();
  cut(1);
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole.size() == expected.size(); })) << why();
  EXPECT_EQ(ends_[1].frames.whole, expected);
  EXPECT_EQ(ends_[0].link->live_paths(), kPaths - 1);
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
}

// Cuts after any number of bytes, of any number of paths, also of all at once; both directions.
TEST_F(TcpPaths, EveryByteComesOnceWhateverBreaks) {
  connect(true);
  std::map<std::uint64_t, std::string> expected[2];
  for (int call = 0; call < 40; ++call) {
    std::shared_ptr<Buffer> buffers[2];
    for (std::size_t end = 0; end < 2; ++end) {
      buffers[end] = std::make_shared<Buffer>(300'000);
      expected[1 - end].merge(queue(end, buffers[end], call % 2 == 0 ? 70 : 60'000));
    }
    bool over[2] = {};
    ASSERT_TRUE(support::eventually([&] {
      pump();
      const std::size_t path = random_() % kPaths;
      for (std::size_t to = 0; to < 2; ++to) carry(path, to, 1 + random_() % 20'000);
      if (random_() % 16 == 0) cut(random_() % kPaths);
      if (random_() % 100 == 0)
        for (std::size_t each = 0; each < kPaths; ++each) cut(each);
      for (std::size_t each = 0; each < kPaths; ++each)
        if (wires_[each].ends[0].get() < 0 && random_() % 4 == 0) renew(each);
      // As soon as no frame waits in the queue, the call may end.
      for (std::size_t end = 0; end < 2; ++end)
        if (!over[end] && buffers[end]->unwritten.load() == 0 && random_() % 4 == 0) {
          overwrite(end, buffers[end]);
          over[end] = true;
        }
      return over[0] && over[1];
    })) << why();
  }
  for (std::size_t each = 0; each < kPaths; ++each) renew(each);
  ASSERT_TRUE(run_until([&] { return ends_[0].frames.whole == expected[0] && ends_[1].frames.whole == expected[1]; })) << why();
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); })) << "all is acknowledged";
  EXPECT_GT(ends_[0].frames.unplaced + ends_[1].frames.unplaced, 0);
}

TEST_F(TcpPaths, WithoutADialerTheLastPathBreaksTheLink) {
  connect(false);
  for (std::size_t path = 0; path < kPaths; ++path) {
    EXPECT_FALSE(ends_[0].link->broken());
    cut(path);
    ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == kPaths - 1 - path; }));
  }
  EXPECT_TRUE(ends_[0].link->broken());
  EXPECT_NE(why().find("broke"), std::string::npos) << why();
}

TEST_F(TcpPaths, WithADialerItWaitsAsLongAsItsPatience) {
  connect(true, 300);
  for (std::size_t path = 0; path < kPaths; ++path) cut(path);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == 0; }));
  EXPECT_GT(ends_[0].dialer->breaks, 0);
  EXPECT_FALSE(ends_[0].link->broken());
  const std::uint64_t before = monotonic_ns();
  ASSERT_TRUE(run_until([&] { return ends_[0].link->broken(); }));
  EXPECT_GT(monotonic_ns() - before, 100'000'000U);
  EXPECT_EQ(ends_[0].dialer->given_up, 1);
}

TEST_F(TcpPaths, TheEndOfThePeersProcessEndsTheWaitAtOnce) {
  connect(true);
  for (std::size_t path = 0; path < kPaths; ++path) cut(path);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == 0; }));
  ends_[0].link->give_up();
  pump();
  EXPECT_TRUE(ends_[0].link->broken());
}

TEST_F(TcpPaths, AnOlderAttemptDoesNotReplaceAPath) {
  connect(true);
  cut(0);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->path_is_broken(0) && ends_[1].link->path_is_broken(0); }));
  attempt_ = 4;
  renew(0);
  pump();
  EXPECT_EQ(ends_[0].link->live_paths(), kPaths);
  EXPECT_FALSE(ends_[0].link->takes_path(0, 5));
  EXPECT_TRUE(ends_[0].link->takes_path(0, 6));
  EXPECT_FALSE(ends_[0].link->takes_path(kPaths, 6));
  // A break that this end has not seen.
  renew(0);
  const auto buffer = std::make_shared<Buffer>(500'000);
  const auto expected = queue(0, buffer, 60'000);
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
}

// Another thread may offer a path, but it must not un-place what the old one brought.
TEST_F(TcpPaths, ANewPathIsTakenByAPump) {
  connect(true);
  held_[1] = true;
  const auto buffer = std::make_shared<Buffer>(1 << 20);
  const auto expected = queue(0, buffer, 60'000);
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole.size() > expected.size() / 2; }));
  carry(1, 1, 1'000);  // the opening, and a part of a frame
  pump();
  renew(1);
  EXPECT_EQ(ends_[1].frames.unplaced, 0);
  EXPECT_FALSE(ends_[1].link->takes_path(1, attempt_)) << "it has one of this attempt";
  EXPECT_TRUE(ends_[1].link->unsent()) << "a thread must pump";
  pump();
  EXPECT_EQ(ends_[1].frames.unplaced, 1);
  held_[1] = false;
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
}

TEST_F(TcpPaths, ANewPathThatEndsBeforeAFrameCameIsBrokenAndTheLinkIsNotClosed) {
  connect(true);
  cut(0);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->path_is_broken(0) && ends_[1].link->path_is_broken(0); }));
  {
    auto [one, other] = support::connected_over_loopback();
    const std::lock_guard lock(ends_[1].domain->lock());
    ASSERT_TRUE(ends_[1].domain->take_path(*ends_[1].link, 0, SecureStream(std::move(one)), ++attempt_));
  }
  const int breaks = ends_[1].dialer->breaks;
  ASSERT_TRUE(run_until([&] { return ends_[1].link->path_is_broken(0) && ends_[1].dialer->breaks > breaks; }));
  renew(0);
  const auto buffer = std::make_shared<Buffer>(500'000);
  const auto expected = queue(0, buffer, 60'000);
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
}

// The kernel resets a socket that is closed with unread bytes: then the peer would wait for a new path.
TEST_F(TcpPaths, ALinkThatIsClosedWithUnreadBytesTellsItsEnd) {
  End ends[2];
  Link::Setup setups[2];
  setups[0].session = setups[1].session = Secret::random();
  for (std::size_t path = 0; path < kPaths; ++path) {
    auto [one, other] = support::connected_over_loopback();
    setups[0].sockets.emplace_back(std::move(one));
    setups[1].sockets.emplace_back(std::move(other));
  }
  for (std::size_t end = 0; end < 2; ++end) {
    setups[end].continues = true;
    setups[end].patience_ms = 60'000;
    setups[end].dialer = ends[end].dialer;
    ends[end].link = ends[end].domain->add(std::move(setups[end])).value();
    ends[end].domain->hurry(true);
  }
  {
    const std::lock_guard lock(ends[0].domain->lock());
    ends[0].link->enter(kGroup, ends[0].frames, 0, 0);
  }
  ends[0].domain->pump();  // an opening for each path
  ends[1].domain->close();
  ends[1].link = nullptr;
  EXPECT_TRUE(support::eventually([&] {
    ends[0].domain->pump();
    return ends[0].link->broken();
  })) << "it waits";
  EXPECT_EQ(ends[0].dialer->breaks, 0);
}

// An abort, while no path is there: the caller has its buffer back at once.
TEST_F(TcpPaths, AnAbortWhileAllPathsAreBrokenGivesTheBufferBack) {
  connect(true);
  const auto buffer = std::make_shared<Buffer>(4 << 20);
  (void)queue(0, buffer, 60'000);
  Frame last;
  last.set_kind(FrameKind::progress);
  last.peer_group = kGroup;
  for (std::size_t path = 0; path < kPaths; ++path) held_[path] = true;
  ASSERT_TRUE(run_until([&] { return ends_[0].link->unsent(); }));
  for (std::size_t path = 0; path < kPaths; ++path) cut(path);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == 0; }));
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->queue({last, nullptr, {buffer, &buffer->lender}, &buffer->unwritten});
    EXPECT_GT(buffer->unwritten.load(), 0U);
    ends_[0].link->recall(&buffer->unwritten, buffer->lender);
  }
  EXPECT_EQ(buffer->unwritten.load(), 0U);
  EXPECT_FALSE(buffer->lender.needed());
}

// A call may end, and its stream after it, while a short frame waits: then the queue alone holds what counts the frame.
TEST_F(TcpPaths, AShortFrameMayOutliveTheOwnerOfItsMemory) {
  connect(false);
  auto buffer = std::make_shared<Buffer>(100);
  const std::weak_ptr<Buffer> memory = buffer;
  const auto expected = queue(0, buffer, 100);
  buffer.reset();
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_TRUE(memory.expired());
}

// Nothing behind malformed input is read, though more of it has come.
TEST_F(TcpPaths, AnAcknowledgementOfWhatWasNotSentBreaksTheLink) {
  connect(true);
  ASSERT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
  Frame frames[2];
  for (std::uint64_t number = 0; number < 2; ++number) {
    frames[number].set_kind(FrameKind::rate);
    frames[number].sequence = ends_[0].link->heard() + 1 + number;
    frames[number].acknowledged = 1'000'000;
  }
  ASSERT_EQ(send(wires_[0].ends[0].get(), frames, sizeof frames, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof frames));
  ASSERT_TRUE(run_until([&] { return ends_[0].link->broken(); }));
  EXPECT_NE(why().find("frames that were not sent"), std::string::npos) << why();
}

// The last data is under way when its path breaks, and the domain closes.
TEST_F(TcpPaths, ADomainThatClosesSendsAgain) {
  connect(false);
  held_[2] = true;
  const auto buffer = std::make_shared<Buffer>(1 << 20);
  const auto expected = queue(0, buffer, 60'000);
  ASSERT_TRUE(run_until([&] { return !ends_[0].link->has_output() && ends_[1].frames.whole.size() > expected.size() / 2; }));
  cut(2);
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    ends_[0].domain->close();
    closed = true;
  });
  EXPECT_TRUE(support::eventually([&] {
    ends_[1].domain->pump();
    for (std::size_t path = 0; path < 2; ++path)
      for (std::size_t to = 0; to < 2; ++to) carry(path, to, 64 << 10);
    return ends_[1].frames.whole == expected && closed.load();
  }));
  closing.join();
}

TEST_F(TcpPaths, AFrameOnAPathThatStandsStillComesOverAnother) {
  connect(false, 60'000, 1'000);
  held_[0] = true;
  const auto buffer = std::make_shared<Buffer>(1 << 20);
  const auto expected = queue(0, buffer, 60'000);
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_EQ(ends_[0].link->live_paths(), kPaths);
  held_[0] = false;
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
  EXPECT_EQ(ends_[1].frames.whole, expected) << "the copies are dropped";
}

}  // namespace
}  // namespace seto::tcp

// A link of several sockets whose paths break: what arrives, and when the link ends.

#include "tests/support/tcp_paths.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace seto::tcp {
namespace {

using support::Buffer;

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
  EXPECT_EQ(ends_[0].link->live_paths(), paths_ - 1);
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
}

TEST_F(TcpPaths, EveryByteComesOnceWhateverBreaks) { every_byte_comes_once(); }

// While its only path is broken, a link waits for the next one.
TEST_F(TcpPaths, EveryByteComesOnceOverASinglePathToo) {
  paths_ = 1;
  every_byte_comes_once();
}

TEST_F(TcpPaths, WithoutADialerTheLastPathBreaksTheLink) {
  connect(false);
  for (std::size_t path = 0; path < paths_; ++path) {
    EXPECT_FALSE(ends_[0].link->broken());
    cut(path);
    ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == paths_ - 1 - path; }));
  }
  EXPECT_TRUE(ends_[0].link->broken());
  EXPECT_NE(why().find("broke"), std::string::npos) << why();
}

TEST_F(TcpPaths, WithADialerItWaitsAsLongAsItsPatience) {
  connect(true, 300);
  for (std::size_t path = 0; path < paths_; ++path) cut(path);
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
  for (std::size_t path = 0; path < paths_; ++path) cut(path);
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
  EXPECT_EQ(ends_[0].link->live_paths(), paths_);
  EXPECT_FALSE(ends_[0].link->takes_path(0, 5));
  EXPECT_TRUE(ends_[0].link->takes_path(0, 6));
  EXPECT_FALSE(ends_[0].link->takes_path(paths_, 6));
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
  for (std::size_t path = 0; path < paths_; ++path) {
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
  for (std::size_t path = 0; path < paths_; ++path) held_[path] = true;
  ASSERT_TRUE(run_until([&] { return ends_[0].link->unsent(); }));
  for (std::size_t path = 0; path < paths_; ++path) cut(path);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->live_paths() == 0; }));
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->queue({last, nullptr, {buffer, &buffer->lender}, &buffer->unwritten});
    EXPECT_GT(buffer->unwritten.load(), 0U);
    EXPECT_TRUE(ends_[0].link->recall(&buffer->unwritten, buffer->lender));
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
  EXPECT_EQ(ends_[0].link->live_paths(), paths_);
  held_[0] = false;
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
  EXPECT_EQ(ends_[1].frames.whole, expected) << "the copies are dropped";
}

}  // namespace
}  // namespace seto::tcp

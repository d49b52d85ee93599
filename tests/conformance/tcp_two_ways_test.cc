// Links whose long frames go over the socket and the others over rails, at the same time: order, full ways, breaks, sleepers, and
// memory that is given back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/named_buffer.h"
#include "tests/support/named_memory_resource.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_rails.h"

namespace seto::tcp {
namespace {

using support::FakeFabric;
using support::NamedBuffer;
using support::RailEnd;
using support::TcpRails;
using Frames = std::map<std::uint64_t, std::string>;

constexpr std::size_t kLong = 60'000;
constexpr std::size_t kShort = 1'000;

// Sockets were found to be faster, for longer than a test lasts.
std::unique_ptr<WayChoice> sockets_are_faster() {
  constexpr std::uint64_t kHourNs = 3'600'000'000'000;
  auto choice = std::make_unique<WayChoice>();
  std::uint64_t now_ns = monotonic_ns() + kHourNs;
  choice->look(1, true, now_ns);
  for (bool done = false; !done;) {
    const WayChoice::Way way = choice->next();
    choice->sent(way, 0, WayChoice::kSample, now_ns);
    now_ns += way == WayChoice::Way::rails ? 1'000'000'000 : 10'000'000;
    done = choice->acknowledged(0, now_ns);
  }
  return choice;
}

class TwoWays : public TcpRails {
 protected:
  explicit TwoWays(FakeFabric::Drive drive = FakeFabric::Drive::by_hand) : TcpRails(drive, {}, "always", sockets_are_faster) {}
  void SetUp() override {
    ASSERT_TRUE(open_rail(0));
    ASSERT_TRUE(settle());
    pump();  // the choice sees the rail
  }
  std::shared_ptr<NamedBuffer> make(std::size_t size) {
    auto buffer = std::make_shared<NamedBuffer>(size);
    for (std::byte& each : buffer->bytes) each = static_cast<std::byte>(random_());
    return buffer;
  }
  // Frames of these sizes by turns, as long as the buffer is.
  Frames queue_all(std::size_t from, const std::shared_ptr<NamedBuffer>& buffer, std::array<std::size_t, 2> sizes) {
    Frames expected;
    const std::lock_guard lock(ends_[from].domain->lock());
    std::size_t at = 0;
    for (std::size_t turn = 0; at + sizes[turn % 2] <= buffer->bytes.size(); at += sizes[turn++ % 2]) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = support::kRailsGroup;
      frame.mark = ++mark_;
      frame.length = static_cast<std::uint32_t>(sizes[turn % 2]);
      const std::byte* const data = buffer->bytes.data() + at;
      ends_[from].link->queue({frame, data, {buffer, &buffer->lender}, &buffer->unwritten});
      expected[mark_].assign(reinterpret_cast<const char*>(data), frame.length);
    }
    ends_[from].domain->note_output();
    return expected;
  }
  // A frame without a payload that overtakes those that wait.
  std::uint64_t queue_urgent(std::size_t from) {
    const std::lock_guard lock(ends_[from].domain->lock());
    Frame frame;
    frame.set_kind(FrameKind::progress);
    frame.peer_group = support::kRailsGroup;
    frame.mark = ++mark_;
    ends_[from].link->queue_urgent(frame);
    return mark_;
  }
  // That end takes what its rails have brought, and nothing of its socket.
  void read_rails(std::size_t end) {
    const std::lock_guard lock(ends_[end].domain->lock());
    (void)ends_[end].host->pipes().poll();
    (void)ends_[end].link->receive_rails();
  }
  // That end reads, while the devices do nothing.
  template <class Condition>
  bool read_until(std::size_t end, const Condition& condition) {
    return support::eventually([&] { return ends_[end].domain->pump(), condition(); });
  }
  // Until the end writes nothing more.
  void pump_until_full(std::size_t end) {
    for (std::uint64_t before = ~std::uint64_t{0}; before != ends_[end].link->bytes_sent();) {
      before = ends_[end].link->bytes_sent();
      ends_[end].domain->pump();
    }
  }
  bool arrived(std::size_t to, const Frames& expected, bool longs) const {
    for (const auto& [mark, bytes] : expected)
      if ((bytes.size() >= BytePipe::kLongPart) == longs && ends_[to].frames.whole.count(mark) == 0) return false;
    return true;
  }
  bool any_arrived(std::size_t to, const Frames& expected, bool longs) const {
    for (const auto& [mark, bytes] : expected)
      if ((bytes.size() >= BytePipe::kLongPart) == longs && ends_[to].frames.whole.count(mark) != 0) return true;
    return false;
  }
  void break_socket(std::size_t end) {
    const std::lock_guard lock(ends_[end].domain->lock());
    ends_[end].link->drop_path(0, failure(Code::unavailable, "the test breaks it"));
  }
  void renew_socket() {
    auto [one, other] = support::connected_over_loopback();
    ++attempt_;
    PrivateFd* const sockets[2] = {&one, &other};
    for (std::size_t end = 0; end < 2; ++end) {
      const std::lock_guard lock(ends_[end].domain->lock());
      EXPECT_TRUE(ends_[end].domain->take_path(*ends_[end].link, 0, SecureStream(std::move(*sockets[end])), attempt_));
    }
  }
};

// Each way keeps its order, and neither waits for the other: frames that overtake go to their place at once.
TEST_F(TwoWays, OvertakeEachOther) {
  auto expected = queue_all(0, make(10 * (kLong + kShort)), {kShort, kLong});
  pump_until_full(0);
  ASSERT_TRUE(read_until(1, [&] { return arrived(1, expected, true); }));
  EXPECT_FALSE(any_arrived(1, expected, false)) << "the devices have done nothing yet";
  ASSERT_TRUE(arrive(1, expected));
  ASSERT_TRUE(settle());
  const auto more = queue_all(0, make(10 * (kLong + kShort)), {kLong, kShort});
  pump_until_full(0);
  fabric_->run();
  read_rails(1);
  EXPECT_TRUE(arrived(1, more, false)) << "though the socket was not read";
  EXPECT_FALSE(any_arrived(1, more, true));
  expected.insert(more.begin(), more.end());
  ASSERT_TRUE(arrive(1, expected));
  ASSERT_TRUE(settle());
}

// The socket takes no more, and the next frame waits for it; what presses still goes over the rail, and the sender is woken when
// the socket has room.
TEST_F(TwoWays, AFullSocketHoldsNoRail) {
  const auto buffer = make(16'000'000);
  const auto expected = queue_all(0, buffer, {kLong, kLong});
  pump_until_full(0);
  ASSERT_TRUE(ends_[0].link->wants_to_write(0));
  ASSERT_GT(buffer->unwritten.load(), 0U);
  const std::uint64_t mark = queue_urgent(0);
  ends_[0].domain->pump();
  fabric_->run();
  read_rails(1);
  EXPECT_EQ(ends_[1].frames.whole.count(mark), 1U);
  const auto is_woken = [&] {
    pollfd event{ends_[0].domain->descriptor(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  };
  int waits = 0;
  ASSERT_TRUE(support::eventually([&] {
    ends_[0].domain->pump();
    ends_[0].domain->prepare_to_sleep();
    ends_[0].domain->pump();
    if (ends_[0].link->wants_to_write(0)) {
      ++waits;
      EXPECT_TRUE(read_until(1, is_woken));
    } else {
      ends_[1].domain->pump();  // a sender without output is woken by acknowledgements only
    }
    fabric_->run();  // a socket that stands still on a slow machine leaves its frames to the rail
    return arrived(1, expected, true);
  }));
  EXPECT_GT(waits, 0);
  ASSERT_TRUE(settle());
}

// The ring is full of frames whose device does nothing, and long frames wait behind them.
TEST_F(TwoWays, AFullRailIsWaitedFor) {
  auto expected = queue_all(0, make(600'000), {kShort, kShort});
  expected.merge(queue_all(0, make(600'000), {kLong, kLong}));
  pump_until_full(0);
  EXPECT_FALSE(any_arrived(1, expected, true));
  ASSERT_TRUE(arrive(1, expected));
  ASSERT_TRUE(settle());
}

// Nothing is sent twice only because the peer does not read for a while.
TEST_F(TwoWays, AReaderThatIsBusyCausesNoCopies) {
  const auto expected = queue_all(0, make(1'000'000), {kLong, kShort});
  pump_until_full(0);
  const std::uint64_t sent = ends_[0].link->bytes_sent();
  static std::uint64_t later_ns = 0;
  for (later_ns = 0; later_ns < 3'000'000'000; later_ns += 50'000'000) {
    {
      const std::lock_guard lock(ends_[0].domain->lock());
      EXPECT_FALSE(ends_[0].link->look_after([] { return monotonic_ns() + later_ns; }));
    }
    ends_[0].domain->pump();
    fabric_->run();
  }
  EXPECT_EQ(ends_[0].link->bytes_sent(), sent);
  ASSERT_TRUE(arrive(1, expected));
  ASSERT_TRUE(settle());
}

// Bytes that come over the socket are read by the first pump that can, though rails are polled more often.
TEST_F(TwoWays, AreLookedAtInEachPump) {
  Frames expected;
  for (int turn = 0; turn < 40; ++turn) {
    const auto more = queue_all(0, make(kLong), {kLong, kLong});
    pump_until_full(0);
    expected.insert(more.begin(), more.end());
    if (turn == 0) {
      ASSERT_TRUE(read_until(1, [&] { return ends_[1].frames.whole == expected; }));
      continue;
    }
    pollfd event{ends_[1].link->descriptor(0), POLLIN, 0};
    while (ends_[1].frames.whole.size() < expected.size()) {
      ASSERT_EQ(poll(&event, 1, 20'000), 1);
      const std::uint64_t before = ends_[1].link->bytes_received();
      ends_[1].domain->pump();
      ASSERT_GT(ends_[1].link->bytes_received(), before) << "turn " << turn;
    }
  }
  EXPECT_EQ(ends_[1].frames.whole, expected);
}

// Half of a frame was written to the socket. The rail reads it where it lies, and only then its owner has it back.
TEST_F(TwoWays, WhatTheSocketHadTakenComesOverTheRail) {
  const auto buffer = make(16'000'000);
  fabric_->count_reads_of(buffer->bytes.data(), buffer->bytes.size());
  const auto expected = queue_all(0, buffer, {kLong, kShort});
  pump_until_full(0);
  EXPECT_EQ(fabric_->bytes_read(), 0U);
  break_socket(0);
  pump_until_full(0);
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    EXPECT_FALSE(ends_[0].link->give_back(buffer->lender)) << "the device reads it";
  }
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_GT(fabric_->bytes_read(), 0U);
  ASSERT_TRUE(settle());
  EXPECT_FALSE(buffer->lender.needed());
}

TEST_F(TwoWays, WhatARailHadTakenComesOverTheSocket) {
  const auto expected = queue_all(0, make(2'000'000), {kShort, kLong});
  ends_[0].domain->pump();
  fabric_->set_port("a0", 1, rdma::PortState::down);
  for (RailEnd& end : ends_) end.domain->prepare_to_sleep();  // they take the event
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_FALSE(on_rails(0));
  ASSERT_TRUE(settle());
  fabric_->set_port("a0", 1, rdma::PortState::active);
  for (RailEnd& end : ends_) end.domain->prepare_to_sleep();
  ASSERT_TRUE(open_rail(0));
  ASSERT_TRUE(settle());
  const std::size_t doorbells = fabric_->doorbells();
  ends_[1].frames.whole.clear();
  const auto more = queue_all(0, make(10 * kLong), {kLong, kLong});
  ends_[0].domain->pump();
  ASSERT_TRUE(read_until(1, [&] { return ends_[1].frames.whole == more; }));
  EXPECT_EQ(fabric_->doorbells(), doorbells) << "long frames go over the socket again";
  EXPECT_TRUE(on_rails(0));
}

// The abort of a call: its frames wait for the socket, which has taken half of one of them.
TEST_F(TwoWays, AreRecalled) {
  const auto buffer = make(16'000'000);
  const auto expected = queue_all(0, buffer, {kLong, kShort});
  pump_until_full(0);
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ASSERT_TRUE(ends_[0].link->recall(&buffer->unwritten, buffer->lender)) << "no device reads any of it";
  }
  EXPECT_FALSE(buffer->lender.needed());
  std::fill(buffer->bytes.begin(), buffer->bytes.end(), std::byte{0xdd});
  ASSERT_TRUE(settle());
  ASSERT_FALSE(ends_[1].frames.whole.empty());
  EXPECT_LT(ends_[1].frames.whole.size(), expected.size());
  for (const auto& [mark, bytes] : ends_[1].frames.whole) EXPECT_EQ(bytes, expected.at(mark));
}

// Rails and sockets break at any moment, at either end; both directions; and each caller has its buffer back early.
TEST_F(TwoWays, EachFrameComesOnceWhateverBreaks) {
  Frames expected[2];
  for (std::uint64_t call = 0; call < support::repetitions(80, 20); ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    if (ends_[0].link->path_is_broken(0) || ends_[1].link->path_is_broken(0)) renew_socket();
    std::shared_ptr<NamedBuffer> buffers[2] = {make(400'000), make(400'000)};
    for (std::size_t end = 0; end < 2; ++end)
      expected[1 - end].merge(queue_all(end, buffers[end], {1 + random_() % kLong, 1 + random_() % kLong}));
    for (std::size_t turns = random_() % 40; turns > 0; --turns) {
      for (std::size_t steps = random_() % 100; steps > 0; --steps) fabric_->step();
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
    if (random_() % 3 == 0) break_socket(random_() % 2);
    bool over[2] = {};
    ASSERT_TRUE(support::eventually([&] {
      for (std::size_t steps = random_() % 200; steps > 0; --steps) fabric_->step();
      const std::size_t end = random_() % 2;
      if (ends_[end].link->path_is_broken(0) && random_() % 16 == 0) renew_socket();
      ends_[end].domain->pump();
      const std::lock_guard lock(ends_[end].domain->lock());
      if (!over[end] && buffers[end]->unwritten == 0 && ends_[end].link->give_back(buffers[end]->lender)) {
        std::fill(buffers[end]->bytes.begin(), buffers[end]->bytes.end(), std::byte{0xdd});
        over[end] = true;
      }
      return over[0] && over[1];
    })) << "call "
        << call;
  }
  if (ends_[0].link->path_is_broken(0) || ends_[1].link->path_is_broken(0)) renew_socket();
  for (std::size_t end = 0; end < 2; ++end) ASSERT_TRUE(arrive(end, expected[end])) << "end " << end;
  EXPECT_TRUE(settle()) << "all is acknowledged";
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

class TwoWaysAsleep : public TwoWays {
 protected:
  TwoWaysAsleep() : TwoWays(FakeFabric::Drive::by_thread) {}
};

// Both ends send and receive over both ways, and sleep whenever nothing moves.
TEST_F(TwoWaysAsleep, LoseNoWakeup) {
  const std::size_t bytes = support::repetitions(20'000'000, 4'000'000);
  Frames expected[2];
  for (std::size_t end = 0; end < 2; ++end)
    expected[1 - end] = queue_all(end, make(bytes), {end == 0 ? kLong : kShort, end == 0 ? kShort : 65'536});
  std::atomic<int> over{0};
  const auto run = [&](std::size_t end) {
    RailEnd& own = ends_[end];
    bool done = false;
    while (over < 2) {
      const Moved moved = own.domain->pump();
      if (!done && own.frames.whole.size() == expected[end].size() && !own.link->unsent()) {
        done = true;
        ++over;
      }
      if (moved.near || moved.far) continue;
      own.domain->prepare_to_sleep();
      const Moved late = own.domain->pump();
      if (late.near || late.far) continue;
      pollfd event{own.domain->descriptor(), POLLIN, 0};
      const int woken = poll(&event, 1, done ? 1 : 20'000);
      EXPECT_TRUE(done || woken == 1) << "end " << end << " was not woken";
      if (!done && woken != 1) over = 2;
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  for (std::size_t end = 0; end < 2; ++end) EXPECT_TRUE(ends_[end].frames.whole == expected[end]);
}

// Real time decides: the samples of a trial change the way in the middle of what is queued, until both were measured.
class TwoWaysTried : public TcpRails {
 protected:
  TwoWaysTried() : TcpRails(FakeFabric::Drive::by_hand, {}, "always", [] { return std::make_unique<WayChoice>(); }) {}
  [[nodiscard]] bool measured(std::size_t end) const {
    const WayChoice& choice = *ends_[end].choice;
    return choice.rate(WayChoice::Way::rails) > 0 && choice.rate(WayChoice::Way::sockets) > 0;
  }
};

TEST_F(TwoWaysTried, ChangeInTheMiddleOfData) {
  ASSERT_TRUE(open_rail(0) && open_rail(1));
  for (int round = 0; round < 40 && !(measured(0) && measured(1)); ++round) {
    std::map<std::uint64_t, std::string> expected[2];
    for (std::size_t end = 0; end < 2; ++end) expected[1 - end] = queue(end, 8'000'000, 65'536);
    for (std::size_t end = 0; end < 2; ++end) ASSERT_TRUE(arrive(end, expected[end])) << "end " << end;
    for (RailEnd& end : ends_) end.frames.whole.clear();
  }
  ASSERT_TRUE(settle());
  EXPECT_TRUE(measured(0) && measured(1));
  EXPECT_THAT(ends_[0].link->ways_taken(), ::testing::SizeIs(3)) << "the socket, and both rails";
}

}  // namespace
}  // namespace seto::tcp

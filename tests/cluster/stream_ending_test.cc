// Communicators that end while their operations are queued in a stream behind an operation that does not end.

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "src/api/support/handles.h"
#include "src/base/clock.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/communicators.h"
#include "tests/support/seed.h"

namespace seto::testing {
namespace {

using Floats = std::vector<float>;

constexpr std::uint32_t kBlockedMs = 30'000;  // then the blocking operation times out, so that a failing test ends too
constexpr double kAtOnce = 10;                // far below that, and enough for a loaded machine

double seconds_since(std::uint64_t begin_ns) { return static_cast<double>(monotonic_ns() - begin_ns) / 1e9; }

void ends_at_once(setoResult_t (*end)(setoComm_t), setoComm_t& comm) {
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(succeeded(end(comm)));
  EXPECT_LT(seconds_since(begin), kAtOnce);
  comm = nullptr;
}

// The blocking operation is the first item of a stream of rank 0.
class Blocked {
 public:
  Blocked() { EXPECT_TRUE(succeeded(setoStreamCreate(&stream_))); }
  ~Blocked() { EXPECT_TRUE(succeeded(setoStreamDestroy(stream_))); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

  [[nodiscard]] setoStream_t stream() const { return stream_; }

  // The peer does not call until let_go().
  void by_collective(setoComm_t comm, setoStream_t stream) {
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    call.deadlineMs = kBlockedMs;
    EXPECT_TRUE(
        succeeded(setoAllReduceConfig(late_.data(), late_.data(), late_.size(), setoFloat32, setoSum, comm, stream, &call)));
  }
  void let_go(setoComm_t peer) {
    Floats values(late_.size(), 1);
    EXPECT_TRUE(succeeded(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, peer, nullptr)));
    EXPECT_EQ(values, Floats(late_.size(), 2));
  }
  void expect_whole() const { EXPECT_EQ(late_, Floats(late_.size(), 2)); }

  // Queues operations 2 and 3 of the stream, of both kinds, for the communicator that ends.
  void follow(setoComm_t comm) {
    EXPECT_TRUE(succeeded(setoAllReduce(own_.data(), own_.data(), own_.size(), setoFloat32, setoSum, comm, stream_)));
    EXPECT_TRUE(succeeded(setoSend(own_.data(), own_.size(), setoFloat32, 1, comm, stream_)));
  }
  // Its items end in their turn, with the reason.
  void expect_failed(const char* reason) const {
    EXPECT_TRUE(succeeded(setoStreamWait(stream_, 1, kBlockedMs)));
    for (const std::uint64_t position : {2U, 3U}) {
      const setoResult_t result = setoStreamWait(stream_, position, kBlockedMs);
      EXPECT_NE(result, setoSuccess);
      EXPECT_NE(std::string(setoGetLastError(nullptr)).find(reason), std::string::npos) << setoGetLastError(nullptr);
    }
    EXPECT_EQ(own_, Floats(own_.size(), 1)) << "an operation that never began wrote";
  }
  void expect_pending(std::uint64_t first, std::uint64_t last) const {
    for (std::uint64_t position = first; position <= last; ++position)
      EXPECT_EQ(setoStreamPoll(stream_, position), setoInProgress) << position;
  }

 private:
  setoStream_t stream_ = nullptr;
  Floats late_ = Floats(5000, 1);
  Floats own_ = Floats(3000, 1);
};

SETO_TEST_ALONE(StreamEnding, abort_waits_for_nobody_before_it) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  blocked.by_collective(before[0], blocked.stream());
  blocked.follow(own[0]);
  Floats after(10, 1);
  EXPECT_TRUE(succeeded(setoAllReduce(after.data(), after.data(), 10, setoFloat32, setoSum, before[0], blocked.stream())));
  ends_at_once(setoCommAbort, own[0]);
  blocked.expect_pending(1, 4);
  blocked.let_go(before[1]);
  blocked.expect_failed("setoCommAbort");
  blocked.expect_whole();
  // Later items continue.
  Floats peer(10, 1);
  EXPECT_TRUE(succeeded(setoAllReduce(peer.data(), peer.data(), 10, setoFloat32, setoSum, before[1], nullptr)));
  EXPECT_TRUE(failed(setoStreamWait(blocked.stream(), 4, 0), setoInvalidUsage, "setoCommAbort"));
  EXPECT_EQ(after, Floats(10, 2));
}

SETO_TEST_ALONE(StreamEnding, destroy_of_what_has_failed_waits_for_nobody_before_it) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  ends_at_once(setoCommAbort, own[1]);
  float value = 1;
  EXPECT_TRUE(failed(setoRecv(&value, 1, setoFloat32, 1, own[0], nullptr), setoRemoteError, "rank 1"));
  blocked.by_collective(before[0], blocked.stream());
  blocked.follow(own[0]);
  ends_at_once(setoCommDestroy, own[0]);
  blocked.expect_pending(1, 3);
  blocked.let_go(before[1]);
  blocked.expect_failed("rank 1");
}

SETO_TEST_ALONE(StreamEnding, destroy_hears_that_nobody_will_take_its_message) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  Floats sent(3000, 1);
  blocked.by_collective(before[0], blocked.stream());
  EXPECT_TRUE(succeeded(setoSend(sent.data(), sent.size(), setoFloat32, 1, own[0], blocked.stream())));
  ends_at_once(setoCommAbort, own[1]);
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(failed(setoCommDestroy(own[0]), setoRemoteError, "rank 1"));
  EXPECT_LT(seconds_since(begin), kAtOnce);
  own[0] = nullptr;
  blocked.let_go(before[1]);
  EXPECT_TRUE(failed(setoStreamWait(blocked.stream(), 2, kBlockedMs), setoRemoteError, "rank 1"));
}

// No rank of this process has learned of it yet.
SETO_TEST_ALONE(StreamEnding, destroy_learns_that_a_peer_has_left) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  blocked.by_collective(before[0], blocked.stream());
  blocked.follow(own[0]);
  ends_at_once(setoCommAbort, own[1]);
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(failed(setoCommDestroy(own[0]), setoRemoteError, "rank 1"));
  EXPECT_LT(seconds_since(begin), kAtOnce);
  own[0] = nullptr;
  blocked.let_go(before[1]);
  blocked.expect_failed("rank 1");
}

SETO_TEST_ALONE(StreamEnding, abort_ends_a_finalize_that_waits) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  blocked.by_collective(before[0], blocked.stream());
  blocked.follow(own[0]);
  std::thread finalizer([comm = own[0]] { EXPECT_TRUE(failed(setoCommFinalize(comm), setoInvalidUsage, "setoCommAbort")); });
  while (!own[0]->working()) std::this_thread::yield();
  ends_at_once(setoCommAbort, own[0]);
  finalizer.join();
  blocked.let_go(before[1]);
  blocked.expect_failed("setoCommAbort");
}

SETO_TEST_ALONE(StreamEnding, abort_waits_for_no_function_before_it) {
  struct Gate {
    std::atomic<bool> entered{false}, open{false};
  } gate;
  ThreadRanks own(2);
  Blocked blocked;
  std::thread caller([&] {
    EXPECT_TRUE(succeeded(setoLaunchHostFunction(
        blocked.stream(),
        [](void* argument) {
          auto& its_gate = *static_cast<Gate*>(argument);
          its_gate.entered.store(true);
          const Deadline until = Deadline::after_ms(kBlockedMs);
          while (!its_gate.open.load() && !until.passed()) std::this_thread::yield();
        },
        &gate)));
  });
  while (!gate.entered.load()) std::this_thread::yield();
  blocked.follow(own[0]);
  ends_at_once(setoCommAbort, own[0]);
  blocked.expect_pending(1, 3);
  gate.open.store(true);
  caller.join();
  blocked.expect_failed("setoCommAbort");
}

SETO_TEST_ALONE(StreamEnding, abort_waits_for_no_other_stream_before_it) {
  ThreadRanks before(2), own(2);
  Blocked blocked;
  setoStream_t other = nullptr;
  EXPECT_TRUE(succeeded(setoStreamCreate(&other)));
  blocked.by_collective(before[0], other);
  EXPECT_TRUE(succeeded(setoStreamWaitFor(blocked.stream(), other, 1)));
  blocked.follow(own[0]);
  ends_at_once(setoCommAbort, own[0]);
  blocked.expect_pending(1, 3);
  blocked.let_go(before[1]);
  blocked.expect_failed("setoCommAbort");
  EXPECT_TRUE(succeeded(setoStreamDestroy(other)));
}

// One progress token drives both communicators.
SETO_TEST_ALONE(StreamEnding, abort_of_a_child_waits_for_nothing_of_its_parent) {
  ThreadRanks before(2);
  std::vector<setoComm_t> own(2);
  before.each([&](setoComm_t comm, int rank) {
    EXPECT_TRUE(succeeded(setoCommSplit(comm, 0, rank, &own[static_cast<std::size_t>(rank)], nullptr)));
  });
  Blocked blocked;
  blocked.by_collective(before[0], blocked.stream());
  blocked.follow(own[0]);
  ends_at_once(setoCommAbort, own[0]);
  blocked.expect_pending(1, 3);
  blocked.let_go(before[1]);
  blocked.expect_failed("setoCommAbort");
  EXPECT_TRUE(succeeded(setoCommDestroy(own[1])));
}

// The calls of a group on a stream are one item. The end of a communicator ends its part, under way or not; the item ends when
// the rest has ended.
SETO_TEST_ALONE(StreamEnding, abort_ends_its_part_of_a_group) {
  for (const bool started : {true, false}) {
    ThreadRanks first(2), before(2), own(2);
    Blocked blocked;
    Floats late(10, 1);
    std::uint64_t item = 1;
    if (!started) {
      EXPECT_TRUE(succeeded(setoAllReduce(late.data(), late.data(), 10, setoFloat32, setoSum, first[0], blocked.stream())));
      item = 2;
    }
    EXPECT_TRUE(succeeded(setoGroupStart()));
    blocked.by_collective(before[0], blocked.stream());
    blocked.follow(own[0]);
    EXPECT_TRUE(succeeded(setoGroupEnd()));
    ends_at_once(setoCommAbort, own[0]);
    blocked.expect_pending(1, item);
    if (!started) {
      Floats peer(10, 1);
      EXPECT_TRUE(succeeded(setoAllReduce(peer.data(), peer.data(), 10, setoFloat32, setoSum, first[1], nullptr)));
      EXPECT_TRUE(succeeded(setoStreamWait(blocked.stream(), 1, kBlockedMs)));
    }
    blocked.let_go(before[1]);
    EXPECT_TRUE(failed(setoStreamWait(blocked.stream(), item, kBlockedMs), setoInvalidUsage, "setoCommAbort"));
    blocked.expect_whole();
  }
}

// Another thread may end the previous item between two checks of a waiting thread; the next item is then the head.
SETO_TEST_ALONE(StreamEnding, a_wait_drives_nothing_behind_its_position) {
  setenv("SETO_CALIBRATE", "off", 1);
  constexpr int kRounds = 300;
  ThreadRanks first(2), before(2);
  for (int round = 0; round < kRounds; ++round) {
    Blocked blocked;
    float own = 1;
    float others = 1;
    EXPECT_TRUE(succeeded(setoAllReduce(&own, &own, 1, setoFloat32, setoSum, first[0], blocked.stream())));
    blocked.by_collective(before[0], blocked.stream());
    std::thread peer([&, comm = first[1]] {
      EXPECT_TRUE(succeeded(setoAllReduce(&others, &others, 1, setoFloat32, setoSum, comm, nullptr)));
    });
    const std::uint64_t begin = monotonic_ns();
    EXPECT_TRUE(succeeded(setoStreamWait(blocked.stream(), 1, kBlockedMs)));
    ASSERT_LT(seconds_since(begin), kAtOnce) << "in round " << round;
    peer.join();
    blocked.let_go(before[1]);
    EXPECT_TRUE(succeeded(setoStreamWait(blocked.stream(), 2, kBlockedMs)));
    blocked.expect_whole();
  }
}

// A communicator ends while the stream reaches its operations. In every order all positions are reached, and the other
// communicator's results are right.
SETO_TEST_ALONE(StreamEnding, at_any_moment) {
  setenv("SETO_CALIBRATE", "off", 1);  // before any other code of this process runs
  constexpr int kRounds = 60;
  constexpr int kPairs = 4;
  ThreadRanks lasting(2);
  std::mt19937 random(static_cast<std::mt19937::result_type>(chosen_seed()));
  for (int round = 0; round < kRounds; ++round) {
    ThreadRanks own(2);
    const int victim = round % 2;
    std::atomic<int> ready{0};
    const std::uint64_t delay_ns = random() % 300'000;
    std::thread ender([&] {
      while (ready.load() < 2) std::this_thread::yield();
      const std::uint64_t moment = monotonic_ns() + delay_ns;
      while (monotonic_ns() < moment) std::this_thread::yield();
      EXPECT_TRUE(succeeded(setoCommAbort(own[victim])));
      own[victim] = nullptr;
    });
    lasting.each([&, handles = std::vector<setoComm_t>{own[0], own[1]}](setoComm_t comm, int rank) {
      setoStream_t stream = nullptr;
      EXPECT_TRUE(succeeded(setoStreamCreate(&stream)));
      Floats right(2000, 1), ending(2000, 1);
      for (int pair = 0; pair < kPairs; ++pair) {
        EXPECT_TRUE(succeeded(setoAllReduce(right.data(), right.data(), 2000, setoFloat32, setoSum, comm, stream)));
        EXPECT_TRUE(succeeded(setoAllReduce(ending.data(), ending.data(), 2000, setoFloat32, setoSum,
                                            handles[static_cast<std::size_t>(rank)], stream)));
      }
      ready.fetch_add(1);
      const setoResult_t ended = setoStreamWait(stream, 2 * kPairs, 0);
      EXPECT_EQ(right, Floats(2000, 1 << kPairs));
      if (ended == setoSuccess) {
        EXPECT_EQ(ending, right) << "rank " << rank << ", round " << round;
      }
      EXPECT_TRUE(succeeded(setoStreamDestroy(stream)));
    });
    ender.join();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace seto::testing

// Ending a communicator that is still being made or split in the background.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/own_threads.h"
#include "tests/support/tries.h"

namespace seto::testing {
namespace {

constexpr std::uint32_t kInitMs = 30'000;
constexpr double kBeforeTheDeadline = 15;  // far below that, and enough for a busy machine
#ifdef SETO_SANITIZED
constexpr double kSoon = 3;  // instrumented code on shared cores is slower
#else
constexpr double kSoon = 0.5;
#endif
constexpr int kTries = 5;

constexpr std::string_view kSetup = "seto-setup";  // name of the threads that make a communicator in the background

setoConfig_t in_background() {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.blocking = setoOff;
  config.initTimeoutMs = kInitMs;
  return config;
}

double seconds_since(std::uint64_t begin_ns) { return static_cast<double>(monotonic_ns() - begin_ns) / 1e9; }

void expect_works(setoComm_t comm, int ranks) {
  float value = 1;
  EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr)));
  EXPECT_EQ(value, static_cast<float>(ranks));
}

void ends_at_once(setoResult_t (*end)(setoComm_t)) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  setoConfig_t config = in_background();
  std::vector<setoComm_t> comms(2);
  for (int rank = 0; rank < 2; ++rank)  // the third rank never calls
    ASSERT_EQ(setoCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], 3, id, rank, &config), setoInProgress);
  EXPECT_EQ(threads_named(kSetup), 2);
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(succeeded(end(comms[0])));
  EXPECT_LT(seconds_since(begin), kBeforeTheDeadline);
  EXPECT_LE(threads_left(kSetup, 1), 1) << "the thread that made it still runs";
  // The other rank fails at once and does not wait for the deadline.
  EXPECT_EQ(settled(comms[1]), setoRemoteError);
  EXPECT_NE(std::string(setoGetLastError(comms[1])).find("rank 0"), std::string::npos) << setoGetLastError(comms[1]);
  EXPECT_LT(seconds_since(begin), kBeforeTheDeadline);
  EXPECT_TRUE(succeeded(end(comms[1])));
  EXPECT_EQ(threads_left(kSetup, 0), 0);
}

SETO_TEST_ALONE(ApiGivingUp, abort_ends_an_init) { ends_at_once(setoCommAbort); }
SETO_TEST_ALONE(ApiGivingUp, destroy_ends_an_init) { ends_at_once(setoCommDestroy); }

// Covers the moment when a rank waits for a peer that took part in the gather but does not connect.
SETO_TEST_ALONE(ApiGivingUp, an_abort_at_any_moment_leaves_no_thread) {
  for (int microseconds = 0; microseconds < 20'000; microseconds += 1'000) {
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    setoConfig_t config = in_background();
    std::vector<setoComm_t> comms(3);
    for (int rank = 0; rank < 3; ++rank)
      ASSERT_EQ(setoCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], 3, id, rank, &config), setoInProgress);
    const std::uint64_t moment = monotonic_ns() + static_cast<std::uint64_t>(microseconds) * 1'000;
    while (monotonic_ns() < moment) std::this_thread::yield();
    const std::uint64_t begin = monotonic_ns();
    for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommAbort(comm)));
    EXPECT_LT(seconds_since(begin), kBeforeTheDeadline) << "after " << microseconds << " us";
    ASSERT_EQ(threads_left(kSetup, 0), 0) << "after " << microseconds << " us";
  }
}

// The rendezvous of two ranks of this process. One rank does not return from the round in which both state that the costs must be
// measured, so the other one measures alone.
class StoppedPeer final {
 public:
  struct Seat {
    StoppedPeer* rendezvous;
    std::size_t rank;
  };
  static int all_gather(const void* mine, void* all, size_t size, void* argument) {
    const auto& seat = *static_cast<const Seat*>(argument);
    return seat.rendezvous->gather(seat.rank, std::string_view(static_cast<const char*>(mine), size), static_cast<char*>(all));
  }

  [[nodiscard]] bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  // The rank does not join a later round either.
  void go_on() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  int gather(std::size_t rank, std::string_view mine, char* all) {
    constexpr auto kPatience = std::chrono::milliseconds(kInitMs);
    std::unique_lock lock(mutex_);
    const std::uint64_t round = rounds_[rank]++;
    messages_[rank] = mine;
    changed_.notify_all();
    if (!changed_.wait_for(lock, kPatience, [&] { return rounds_[1 - rank] > round || open_; })) return 1;
    if (rounds_[1 - rank] <= round) return 1;
    std::memcpy(all + mine.size() * rank, mine.data(), mine.size());
    std::memcpy(all + mine.size() * (1 - rank), messages_[1 - rank].data(), mine.size());
    taken_[rank] = round + 1;
    changed_.notify_all();
    // The next round's message overwrites this one.
    if (!changed_.wait_for(lock, kPatience, [&] { return taken_[1 - rank] > round; })) return 1;
    if (rank == 0 || mine.find("shipped") == std::string_view::npos) return 0;
    stopped_ = true;
    return changed_.wait_for(lock, kPatience, [&] { return open_; }) ? 0 : 1;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::string, 2> messages_;
  std::array<std::uint64_t, 2> rounds_{};
  std::array<std::uint64_t, 2> taken_{};
  bool stopped_ = false;
  bool open_ = false;
};

// Seconds from the abort on one rank until both ranks have ended.
double seconds_until_a_measurement_ends(std::uint64_t ns_before_the_abort) {
  StoppedPeer rendezvous;
  std::array<StoppedPeer::Seat, 2> seats{{{&rendezvous, 0}, {&rendezvous, 1}}};
  std::array<setoComm_t, 2> comms{};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    setoConfig_t config = in_background();
    config.bootstrap = {StoppedPeer::all_gather, &seats[rank]};
    EXPECT_EQ(setoCommInitRankConfig(&comms[rank], 2, setoUniqueId{}, static_cast<int>(rank), &config), setoInProgress);
  }
  const Deadline patience = Deadline::after_ms(kInitMs);
  while (!rendezvous.stopped() && !patience.passed()) std::this_thread::yield();
  EXPECT_TRUE(rendezvous.stopped());
  const std::uint64_t moment = monotonic_ns() + ns_before_the_abort;
  while (monotonic_ns() < moment) std::this_thread::yield();
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(succeeded(setoCommAbort(comms[0])));
  const double own_seconds = seconds_since(begin);
  EXPECT_EQ(threads_left(kSetup, 1), 1);
  const std::uint64_t end = monotonic_ns();
  rendezvous.go_on();
  EXPECT_EQ(settled(comms[1]), setoRemoteError);
  const double others_seconds = seconds_since(end);
  EXPECT_NE(std::string(setoGetLastError(comms[1])).find("rank 0"), std::string::npos) << setoGetLastError(comms[1]);
  EXPECT_TRUE(succeeded(setoCommDestroy(comms[1])));
  return std::max(own_seconds, others_seconds);
}

SETO_TEST_ALONE(ApiGivingUp, abort_ends_a_measurement) {
  constexpr std::uint64_t kMoments[] = {0, 1, 3, 20, 100};
  for (const std::uint64_t milliseconds : kMoments) {
    const auto measure = [&] { return seconds_until_a_measurement_ends(milliseconds * 1'000'000); };
    EXPECT_LT(least_of(kTries, kSoon, measure), kSoon) << "after " << milliseconds << " ms";
    if (::testing::Test::HasFailure()) return;
  }
}

std::vector<setoComm_t> made_in_background(int ranks) {
  setoUniqueId id;
  EXPECT_TRUE(succeeded(setoGetUniqueId(&id)));
  setoConfig_t config = in_background();
  std::vector<setoComm_t> comms(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(setoCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], ranks, id, rank, &config), setoInProgress);
  for (const setoComm_t comm : comms) EXPECT_EQ(settled(comm), setoSuccess);
  return comms;
}

void on_all(const std::vector<setoComm_t>& comms, int ranks) {
  std::vector<std::thread> threads;
  for (const setoComm_t comm : comms)
    if (comm != nullptr) threads.emplace_back([comm, ranks] { expect_works(comm, ranks); });
  for (std::thread& thread : threads) thread.join();
}

// One thread splits all its ranks in turn, so no call may wait for the next.
SETO_TEST_ALONE(ApiGivingUp, a_split_in_the_background_does_not_block) {
  const std::vector<setoComm_t> comms = made_in_background(3);
  std::vector<setoComm_t> children(3);
  for (int rank = 0; rank < 3; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    ASSERT_EQ(setoCommSplit(comms[at], rank == 2 ? SETO_SPLIT_NOCOLOR : 0, 0, &children[at], nullptr), setoInProgress);
    if (rank == 0) {
      EXPECT_TRUE(failed(setoBarrier(comms[0], nullptr), setoInvalidUsage, "still being split"));
    }
  }
  for (const setoComm_t comm : comms) EXPECT_EQ(settled(comm), setoSuccess);
  ASSERT_NE(children[0], nullptr);
  ASSERT_NE(children[1], nullptr);
  EXPECT_EQ(children[2], nullptr);
  on_all(children, 2);
  on_all(comms, 3);
  for (const setoComm_t comm : {children[0], children[1], comms[0], comms[1], comms[2]})
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  EXPECT_EQ(threads_left(kSetup, 0), 0);
}

SETO_TEST_ALONE(ApiGivingUp, a_split_that_fails_in_the_background_leaves_its_parent) {
  const std::vector<setoComm_t> comms = made_in_background(2);
  std::vector<setoComm_t> children(2);
  ASSERT_EQ(setoCommSplit(comms[0], -5, 0, &children[0], nullptr), setoInProgress);
  ASSERT_EQ(setoCommSplit(comms[1], 0, 0, &children[1], nullptr), setoInProgress);
  EXPECT_EQ(settled(comms[0]), setoInvalidArgument);
  EXPECT_EQ(settled(comms[1]), setoRemoteError);
  EXPECT_EQ(children[1], nullptr);
  on_all(comms, 2);
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(setoCommSplit(comms[static_cast<std::size_t>(rank)], 0, 0, &children[static_cast<std::size_t>(rank)], nullptr),
              setoInProgress);
  for (const setoComm_t comm : comms) EXPECT_EQ(settled(comm), setoSuccess);
  on_all(children, 2);
  for (const setoComm_t comm : {children[0], children[1], comms[0], comms[1]}) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

SETO_TEST_ALONE(ApiGivingUp, abort_ends_a_split) {
  const std::vector<setoComm_t> comms = made_in_background(2);
  setoComm_t child = nullptr;
  ASSERT_EQ(setoCommSplit(comms[0], 0, 0, &child, nullptr), setoInProgress);  // the other rank never splits
  const std::uint64_t begin = monotonic_ns();
  EXPECT_TRUE(succeeded(setoCommAbort(comms[0])));
  EXPECT_LT(seconds_since(begin), kBeforeTheDeadline);
  EXPECT_EQ(child, nullptr);
  EXPECT_EQ(threads_left(kSetup, 0), 0);
  float value = 1;
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comms[1], nullptr), setoRemoteError, "rank 0"));
  EXPECT_TRUE(succeeded(setoCommDestroy(comms[1])));
}

}  // namespace
}  // namespace seto::testing

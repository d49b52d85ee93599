// The rates between sites change while a job runs: all ranks use the same version in every operation, and no call waits for ever.
// Loopback is called far, and the ranks state what they have measured.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/communicators.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr std::string_view kHosts = "aabb";  // two ranks of a host reach each other through a rank of the other host
constexpr int kRanks = 4;
constexpr std::size_t kCount = 8 * 1024;  // ints: operations of this size report rates
constexpr std::uint64_t kMegabyte = 1'000'000;

// Megabytes per second of a link between the sites, as its ranks pretend to measure it: two ranks of a site send to two ranks of
// the other one each, and see an equal part of it. 0: nothing is known.
std::atomic<std::uint64_t> measured{0};
constexpr std::uint64_t kParts = 4;

setoComm_t join(const Seat& seat) {
  static std::once_flag pretended;  // ranks that are threads share the process
  std::call_once(pretended, [] { pretend_far_sites([] { return measured.load() * kMegabyte / kParts; }); });
  setoConfig_t config = config_of_test();
  const std::string name(1, kHosts[static_cast<std::size_t>(seat.rank)]);
  const std::string host = "rates " + name;
  config.hostId = host.c_str();
  config.siteId = name.c_str();
  return seat.join(config);
}

struct Sum {
  explicit Sum(const Seat& seat, int turn) : values(kCount, seat.rank + turn), expected(sum_of(seat.ranks, turn)) {}
  static int sum_of(int ranks, int turn) { return ranks * (ranks - 1) / 2 + ranks * turn; }
  setoResult_t issue(setoComm_t comm, setoStream_t stream = nullptr) {
    return setoAllReduce(values.data(), values.data(), kCount, setoInt32, setoSum, comm, stream);
  }
  [[nodiscard]] bool right() const {
    return std::all_of(values.begin(), values.end(), [this](int value) { return value == expected; });
  }

  std::vector<int> values;
  int expected;
};

setoResult_t wait_for_all(setoStream_t stream) {
  std::uint64_t position = 0;
  const setoResult_t result = setoStreamPosition(stream, &position);
  return result == setoSuccess ? setoStreamWait(stream, position, 0) : result;
}

bool sum_is_right(const Seat& seat, setoComm_t comm, int turn) {
  Sum sum(seat, turn);
  const Answer result = answer(sum.issue(comm));
  EXPECT_EQ(result.text, "") << "call " << turn;
  EXPECT_TRUE(sum.right()) << "call " << turn;
  return result.code == setoSuccess && sum.right();
}

// Every rank has used the same version last.
void expect_one_version(const Seat& seat, setoComm_t comm) {
  const RateInForce own = rate_in_force(comm);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(seat.ranks));
  ASSERT_EQ(answer(setoAllGather(&own.version, all.data(), 1, setoUint64, comm, nullptr)).text, "");
  EXPECT_EQ(all, std::vector<std::uint64_t>(all.size(), own.version));
}

// Blocking sums until the rate is in force on all ranks. 200 are enough where the control threads run; a busy machine lets them
// wait, so there are some times as many.
void follow(const Seat& seat, setoComm_t comm, std::uint64_t megabytes) {
  constexpr int kEnoughCalls = 200;
  constexpr int kTimes = 10;
  const double expected = static_cast<double>(megabytes * kMegabyte);
  measured = megabytes;
  std::uint64_t all_follow = 0;
  for (int time = 0; time < kTimes && all_follow == 0; ++time) {
    for (int call = 0; call < kEnoughCalls; ++call)
      if (!sum_is_right(seat, comm, call)) return;
    all_follow = rate_in_force(comm).bytes_per_second == expected ? 1 : 0;
    ASSERT_EQ(answer(setoAllReduce(&all_follow, &all_follow, 1, setoUint64, setoMin, comm, nullptr)).text, "");
  }
  EXPECT_EQ(all_follow, 1U) << "rank " << seat.rank << " knows " << rate_in_force(comm).bytes_per_second;
  expect_one_version(seat, comm);
}

class RateVersions : public ::testing::TestWithParam<Kind> {};

TEST_P(RateVersions, ChoiceFollowsWithinTwoHundredOperations) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t comm = join(seat);
    ASSERT_NE(comm, nullptr);
    for (int call = 0; call < 20; ++call) ASSERT_TRUE(sum_is_right(seat, comm, call));
    EXPECT_EQ(rate_in_force(comm).version, 0U) << "nothing was measured";
    for (const std::uint64_t megabytes : {50, 110, 20}) follow(seat, comm, megabytes);
    EXPECT_GE(rate_in_force(comm).version, 3U);
    ASSERT_EQ(answer(setoCommDestroy(comm)).text, "");
  });
}

TEST_P(RateVersions, ThousandQueuedCallsOnTwoCommunicatorsAndASplit) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t comm = join(seat);
    ASSERT_NE(comm, nullptr);
    setoComm_t twin = nullptr;
    ASSERT_EQ(answer(setoCommSplit(comm, 0, seat.rank, &twin, nullptr)).text, "");
    setoStream_t streams[2] = {};
    for (setoStream_t& stream : streams) ASSERT_EQ(answer(setoStreamCreate(&stream)).text, "");
    constexpr int kCalls = 500;
    for (int round = 0; round < 3; ++round) {
      measured = static_cast<std::uint64_t>(20 + 40 * round);
      std::vector<std::unique_ptr<Sum>> sums;
      for (int call = 0; call < kCalls; ++call) {
        if (call % 100 == 50) {
          ASSERT_EQ(answer(setoGroupStart()).text, "");
        }
        sums.push_back(std::make_unique<Sum>(seat, call));
        ASSERT_EQ(answer(sums.back()->issue(comm, streams[0])).text, "");
        sums.push_back(std::make_unique<Sum>(seat, call));
        ASSERT_EQ(answer(sums.back()->issue(twin, streams[1])).text, "");
        if (call % 100 == 60) {
          ASSERT_EQ(answer(setoGroupEnd()).text, "");
        }
      }
      for (const setoStream_t stream : streams) ASSERT_EQ(answer(wait_for_all(stream)).text, "");
      for (const auto& sum : sums) ASSERT_TRUE(sum->right());
      // A part begins with what its parent knows.
      setoComm_t part = nullptr;
      ASSERT_EQ(answer(setoCommSplit(comm, seat.rank % 2, seat.rank, &part, nullptr)).text, "");
      if (round > 0) {
        EXPECT_GE(rate_in_force(part).version, 1U);
      }
      int value = seat.rank;
      ASSERT_EQ(answer(setoAllReduce(&value, &value, 1, setoInt32, setoSum, part, nullptr)).text, "");
      EXPECT_EQ(value, 2 * (seat.rank % 2) + 2);
      ASSERT_EQ(answer(setoCommDestroy(part)).text, "");
    }
    for (const setoComm_t one : {comm, twin}) {
      expect_one_version(seat, one);
      EXPECT_GE(rate_in_force(one).version, 1U);
      ASSERT_EQ(answer(setoCommDestroy(one)).text, "");
    }
    for (const setoStream_t stream : streams) ASSERT_EQ(answer(setoStreamDestroy(stream)).text, "");
  });
}

TEST_P(RateVersions, AnAbortDuringAChangeEndsAllCalls) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t comm = join(seat);
    ASSERT_NE(comm, nullptr);
    int call = 0;
    for (; call < 1'000; ++call) {
      measured = call % 2 == 0 ? 30 : 90;
      Sum sum(seat, call);
      if (seat.rank == 2 && call == 150) break;
      if (sum.issue(comm) != setoSuccess) break;
      ASSERT_TRUE(sum.right());
    }
    EXPECT_GE(call, seat.rank == 2 ? 150 : 148);
    EXPECT_LT(call, 1'000);
    ASSERT_EQ(answer(setoCommAbort(comm)).text, "");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RateVersions, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

// The root of a tree ends before a rank that is frozen has received the broadcast (other algorithms may let the root wait), so a
// proposal waits for that rank, and the calls beyond those that were promised are bound when it has answered.
TEST(RateVersionsOfProcesses, CallsBeyondThePromiseWaitForARankThatIsFrozen) {
  constexpr int kFrozen = 3;
  constexpr int kQueued = 300;
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = join(seat);
    ASSERT_NE(comm, nullptr);
    setoStream_t stream = nullptr;
    ASSERT_EQ(answer(setoStreamCreate(&stream)).text, "");
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(sum_is_right(seat, comm, call));
    std::vector<int> broadcast(kCount, seat.rank == 0 ? 7 : 0);
    setoCallConfig_t by_tree = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_EQ(answer(setoAlgorithmId("tree", &by_tree.algorithm)).text, "");
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
    while (seat.board.signal.load() == 0) std::this_thread::yield();
    measured = 40;
    int* const values = broadcast.data();
    ASSERT_EQ(answer(setoBroadcastConfig(values, values, kCount, setoInt32, 0, comm, nullptr, &by_tree)).text, "");
    EXPECT_EQ(broadcast, std::vector<int>(kCount, 7));
    std::vector<std::unique_ptr<Sum>> sums;
    for (int call = 0; call < kQueued; ++call) {
      sums.push_back(std::make_unique<Sum>(seat, call));
      ASSERT_EQ(answer(sums.back()->issue(comm, stream)).text, "");
    }
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 2;
    ASSERT_EQ(answer(wait_for_all(stream)).text, "");
    for (const auto& sum : sums) ASSERT_TRUE(sum->right());
    follow(seat, comm, 40);
    EXPECT_GE(rate_in_force(comm).version, 1U) << "the two directions may be agreed on one after the other";
    ASSERT_EQ(answer(setoStreamDestroy(stream)).text, "");
    ASSERT_EQ(answer(setoCommDestroy(comm)).text, "");
  });
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(job.reached(rank, 1));
  ASSERT_EQ(kill(job.pid(kFrozen), SIGSTOP), 0);
  job.board().signal = 1;
  for (const int rank : {0}) EXPECT_TRUE(job.reached(rank, 2)) << "issuing waits for no rank";
  ASSERT_EQ(kill(job.pid(kFrozen), SIGCONT), 0);
  job.finish();
}

// The rank that proposes, and one that is asked.
TEST(RateVersionsOfProcesses, ADeathDuringAChangeIsNamedOnAllRanks) {
  for (const int victim : {0, 3}) {
    Job job(Kind::processes, kRanks, [victim](const Seat& seat) {
      const setoComm_t comm = join(seat);
      ASSERT_NE(comm, nullptr);
      setoStream_t stream = nullptr;
      ASSERT_EQ(answer(setoStreamCreate(&stream)).text, "");
      Answer last;
      for (int round = 0; round < 10'000 && last.code == setoSuccess; ++round) {
        std::vector<std::unique_ptr<Sum>> sums;
        for (int call = 0; call < 100 && last.code == setoSuccess; ++call) {
          measured = call % 2 == 0 ? 30 : 90;
          sums.push_back(std::make_unique<Sum>(seat, call));
          last = answer(sums.back()->issue(comm, stream));
        }
        const Answer ended = answer(wait_for_all(stream));
        if (last.code == setoSuccess) last = ended;
        seat.board.counter[static_cast<std::size_t>(seat.rank)] = static_cast<std::uint64_t>(round + 1);
      }
      EXPECT_TRUE(last.says("rank " + std::to_string(victim))) << last.text;
      (void)setoCommAbort(comm);
    });
    ASSERT_TRUE(job.reached(victim, 3));
    job.kill(victim);
    job.finish();
  }
}

}  // namespace
}  // namespace seto::testing

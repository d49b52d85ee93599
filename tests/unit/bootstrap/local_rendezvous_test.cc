#include "src/bootstrap/providers/local_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/bootstrap/init_order.h"
#include "tests/support/child_process.h"
#include "tests/support/tries.h"

namespace seto {
namespace {

using ::testing::ElementsAre;

Deadline soon() { return Deadline::after_ms(20'000); }

// The name is unique to this run, so that two runs at once stay separate.
std::string job_name() {
  return std::string("named root test ") + std::to_string(getpid()) +
         ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

bool meets(const std::string& job, Rank rank, int size, int times = 1) {
  for (int time = 0; time < times; ++time) {
    Result<std::unique_ptr<Bootstrap>> joined = join_local_rendezvous(job, rank, size, static_cast<std::uint64_t>(time), soon());
    if (!joined.ok()) return ADD_FAILURE() << joined.status().text(), false;
    const Result<std::vector<std::string>> all = (*joined)->all_gather(std::to_string(time * 100 + rank), soon());
    if (!all.ok()) return ADD_FAILURE() << all.status().text(), false;
    for (Rank other = 0; other < size; ++other)
      if (all.value()[static_cast<std::size_t>(other)] != std::to_string(time * 100 + other)) return false;
  }
  return true;
}

// The process that runs the server stays until the others have received their last result, as every program does at exit.
testing::ChildProcess process_that(const std::function<bool()>& body) {
  return testing::ChildProcess([&]() -> bool { std::exit(body() ? 0 : 1); });
}

TEST(NamedRoot, ProcessesJoinByNameAnyNumberOfTimes) {
  const std::string job = job_name();
  std::vector<testing::ChildProcess> ranks;
  for (Rank rank = 0; rank < 6; ++rank) ranks.push_back(process_that([&, rank] { return meets(job, rank, 6, 5); }));
  for (testing::ChildProcess& rank : ranks) EXPECT_TRUE(rank.wait());
}

TEST(NamedRoot, JobsOfOtherNamesAreSeparate) {
  const std::string job = job_name();
  std::vector<testing::ChildProcess> ranks;
  for (int which = 0; which < 3; ++which)
    for (Rank rank = 0; rank < 2; ++rank)
      ranks.push_back(process_that([&, which, rank] { return meets(job + std::to_string(which), rank, 2, 2); }));
  for (testing::ChildProcess& rank : ranks) EXPECT_TRUE(rank.wait());
}

TEST(NamedRoot, ThreadsOfOneProcessJoinToo) {
  const std::string job = job_name();
  testing::ChildProcess process([&] {
    std::thread other([&] { EXPECT_TRUE(meets(job, 1, 2)); });
    const bool met = meets(job, 0, 2);
    other.join();
    return met;
  });
  EXPECT_TRUE(process.wait());
}

TEST(NamedRoot, AMissingRankIsNamed) {
  const std::string job = job_name();
  testing::ChildProcess alone([&] {
    std::uint64_t init = 0;  // a new one for each try
    EXPECT_EQ(testing::with_growing_time([&](std::uint64_t ms) {
                const auto joined = join_local_rendezvous(job, 1, 3, init++, Deadline::after_ms(ms));
                EXPECT_FALSE(joined.ok());
                return testing::lacks(joined.status().text(), "ranks 0 and 2 of 3 did not join");
              }),
              "");
    return true;
  });
  EXPECT_TRUE(alone.wait());
}

TEST(NamedRoot, ServesNoNewJobWithTheNameOfADeadOne) {
  const std::string job = job_name();
  testing::ChildProcess first([&] {
    (void)join_local_rendezvous(job, 0, 2, 0, Deadline::after_ms(60'000));
    return true;
  });
  first.kill_now();
  std::vector<testing::ChildProcess> ranks;
  for (Rank rank = 0; rank < 2; ++rank) ranks.push_back(process_that([&, rank] { return meets(job, rank, 2); }));
  for (testing::ChildProcess& rank : ranks) EXPECT_TRUE(rank.wait());
}

TEST(InitOrder, PositionsAreServedInOrder) {
  std::vector<int> order;
  InitOrder first;
  InitOrder second;
  auto dropped = std::make_unique<InitOrder>();
  InitOrder last;
  std::thread other([&] {
    EXPECT_TRUE(last.wait(soon()).ok());
    order.push_back(3);
    last.end();
  });
  EXPECT_FALSE(second.wait(Deadline::after_ms(10)).ok());
  EXPECT_TRUE(first.wait(soon()).ok());
  order.push_back(1);
  dropped.reset();
  first.end();
  EXPECT_TRUE(second.wait(soon()).ok());
  order.push_back(2);
  second.end();
  other.join();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace seto

// Several ranks in each of several processes: one of them connects to the other process for all.

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "src/core/connect/context.h"
#include "src/topology/host_identity.h"
#include "tests/support/communicators.h"
#include "tests/support/other_context.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kMs = 20'000;
constexpr int kProcesses = 2;
constexpr int kEach = 3;
constexpr int kRanks = kProcesses * kEach;

Config quick() {
  Config config;
  config.init_timeout_ms = kMs;
  config.operation_timeout_ms = kMs;
  config.calibrate = Calibrate::off;
  return config;
}

struct SharedMemoryRanksTest {
  SharedMemoryRanks first;
  SharedMemoryRanks second;
};

// Runs the body on each thread of each process. Ranks are numbered so that adjacent ranks are in different processes.
void as_ranks(const Seat& seat, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int index = 0; index < kEach; ++index) threads.emplace_back([&, index] { body(index * kProcesses + seat.rank); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ManyContexts, OfTwoProcessesConnectAtOnceAndConnectAgain) {
  const Shared<SharedMemoryRanksTest> rooms;
  run_ranks(Kind::processes, kProcesses, [&](const Seat& seat) {
    as_ranks(seat, [&](int rank) {
      const auto context = Context::create(quick());
      ASSERT_TRUE(context.ok()) << context.status().text();
      std::vector<std::shared_ptr<Communicator>> communicators;
      for (SharedMemoryRanks* const room : {&rooms->first, &rooms->second}) {
        SharedMemoryBootstrap bootstrap(*room, {rank, kRanks});
        auto made = make_communicator(bootstrap, quick(), context.value());
        ASSERT_TRUE(made.ok()) << made.status().text();
        communicators.push_back(std::move(made).value());
      }
      for (const auto& one : communicators) EXPECT_TRUE(sum_over(*one).ok());
      EXPECT_EQ(context.value()->known(host_identity({}).value()).offered().size(), 1U) << "met once";
      EXPECT_TRUE(SharedMemoryBootstrap(rooms->second, {rank, kRanks})
                      .all_gather({}, Deadline::after_ms(kMs))
                      .ok());  // no rank ends before that
    });
  });
}

TEST(ManyContexts, OfAKilledProcessAreNamedByAllOthers) {
  const Shared<SharedMemoryRanks> room;
  Job job(Kind::processes, kProcesses, [&](const Seat& seat) {
    as_ranks(seat, [&](int rank) {
      const auto context = Context::create(quick());
      ASSERT_TRUE(context.ok()) << context.status().text();
      SharedMemoryBootstrap bootstrap(*room, {rank, kRanks});
      auto made = make_communicator(bootstrap, quick(), context.value());
      ASSERT_TRUE(made.ok()) << made.status().text();
      Status last;
      while (last.ok()) {
        last = sum_over(**made);
        ++seat.board.counter[static_cast<std::size_t>(seat.rank)];
      }
      EXPECT_EQ(last.code(), Code::remote_error);
      EXPECT_NE(std::string(last.text()).find("its process has ended"), std::string::npos) << last.text();
    });
  });
  ASSERT_TRUE(job.reached(1, 50));
  job.kill(1);
  job.finish();
}

// Neither the process nor its other context has ended.
TEST(ManyContexts, OneThatEndsIsReportedInTheOtherProcess) {
  const Shared<SharedMemoryRanks> room;
  run_ranks(Kind::processes, 2, [&](const Seat& seat) {
    auto first = Context::create(quick());
    auto second = Context::create(quick());
    ASSERT_TRUE(first.ok() && second.ok());
    const Deadline until = Deadline::after_ms(kMs);
    auto two = attempt_of_two({first->get(), second->get()}, *room, seat, until);
    ASSERT_TRUE(two.ok()) << two.status().text();
    two->attempt.id = 9;
    auto met = connect_over_memory(**first, two->attempt, until);
    ASSERT_TRUE(met.ok()) << met.status().text();
    ++two->attempt.own;
    ASSERT_TRUE(connect_over_memory(**second, two->attempt, until).ok()) << "the first one has connected both";
    (*first)->keep(met.value(), {});
    const auto others_first = static_cast<std::size_t>(2 - 2 * seat.rank);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 1) {
      first = failure(Code::aborted, "ended");
      ASSERT_TRUE(seat.meet(2));
      return;
    }
    EXPECT_TRUE(eventually([&] { return met.value()[others_first]->dead(); }));
    EXPECT_EQ(met.value()[others_first]->why_dead(), "its process has ended");
    EXPECT_FALSE(met.value()[others_first + 1]->dead());
    ASSERT_TRUE(seat.meet(2));
  });
}

}  // namespace
}  // namespace seto::testing

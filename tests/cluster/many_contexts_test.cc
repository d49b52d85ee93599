// Several ranks in each of several processes: one of them meets the other process for all.

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "src/core/communicator/communicator.h"
#include "src/core/neighbour.h"
#include "src/topology/host_identity.h"
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

Status sum(Communicator& communicator) {
  std::vector<int> values(3000, communicator.rank() + 1);
  Call call;
  call.input = call.output = values.data();
  call.count = values.size();
  call.type = DataType::int32;
  SETO_TRY(communicator.run(call));
  EXPECT_EQ(values, std::vector<int>(values.size(), kRanks * (kRanks + 1) / 2));
  return {};
}

struct Rooms {
  Room first;
  Room second;
};

// What each thread of each process does with its rank, numbered so that neighbours in rank are of different processes.
void as_ranks(const Seat& seat, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int index = 0; index < kEach; ++index) threads.emplace_back([&, index] { body(index * kProcesses + seat.rank); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ManyContexts, OfTwoProcessesMeetAtOnceAndMeetAgain) {
  const Shared<Rooms> rooms;
  run_ranks(Kind::processes, kProcesses, [&](const Seat& seat) {
    as_ranks(seat, [&](int rank) {
      const auto context = Context::create(quick());
      ASSERT_TRUE(context.ok()) << context.status().text();
      std::vector<std::unique_ptr<Communicator>> communicators;
      for (Room* const room : {&rooms->first, &rooms->second}) {
        RoomBootstrap bootstrap(*room, {rank, kRanks});
        auto made = Communicator::create(bootstrap, {quick(), context.value(), {}, nullptr});
        ASSERT_TRUE(made.ok()) << made.status().text();
        communicators.push_back(std::move(made).value());
      }
      for (const auto& one : communicators) EXPECT_TRUE(sum(*one).ok());
      EXPECT_EQ(context.value()->known(host_identity({}).value()).offered().size(), 1U) << "met once";
      EXPECT_TRUE(
          RoomBootstrap(rooms->second, {rank, kRanks}).all_gather({}, Deadline::after_ms(kMs)).ok());  // nobody ends before
    });
  });
}

TEST(ManyContexts, OfAKilledProcessAreNamedByAllOthers) {
  const Shared<Room> room;
  Job job(Kind::processes, kProcesses, [&](const Seat& seat) {
    as_ranks(seat, [&](int rank) {
      const auto context = Context::create(quick());
      ASSERT_TRUE(context.ok()) << context.status().text();
      RoomBootstrap bootstrap(*room, {rank, kRanks});
      auto made = Communicator::create(bootstrap, {quick(), context.value(), {}, nullptr});
      ASSERT_TRUE(made.ok()) << made.status().text();
      Status last;
      while (last.ok()) {
        last = sum(**made);
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
TEST(ManyContexts, OneThatEndsIsGoneForTheOtherProcess) {
  const Shared<Room> room;
  run_ranks(Kind::processes, 2, [&](const Seat& seat) {
    auto first = Context::create(quick());
    auto second = Context::create(quick());
    ASSERT_TRUE(first.ok() && second.ok());
    const Deadline until = Deadline::after_ms(kMs);
    auto one = other_context(**first, *room, seat, until);
    auto two = other_context(**second, *room, seat, until);
    ASSERT_TRUE(one.ok() && two.ok());
    auto heartbeats = (*first)->beat();
    ASSERT_TRUE(heartbeats.ok());
    Neighbour::Introduced both{{MeetingPoint::of_process().value()->address(), {(*first)->id(), (*second)->id()}},
                               {one->process, {one->context, two->context}},
                               9};
    auto approach = Neighbour::approach(both, until);
    ASSERT_TRUE(approach.ok()) << approach.status().text();
    auto met = Neighbour::meet(std::move(approach).value(), **heartbeats);
    ASSERT_TRUE(met.ok()) << met.status().text();
    (*first)->keep(met.value(), {});
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 1) {
      first = failure(Code::aborted, "ended");
      ASSERT_TRUE(seat.meet(2));
      return;
    }
    EXPECT_TRUE(eventually([&] { return met.value()[0]->dead(); }));
    EXPECT_EQ(met.value()[0]->why_dead(), "its process has ended");
    EXPECT_FALSE(met.value()[1]->dead());
    ASSERT_TRUE(seat.meet(2));
  });
}

}  // namespace
}  // namespace seto::testing

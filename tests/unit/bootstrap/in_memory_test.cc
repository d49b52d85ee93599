// The bootstraps that need no socket: one rank, a callback, threads of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "src/bootstrap/providers/callback.h"
#include "src/bootstrap/providers/in_process.h"
#include "src/bootstrap/providers/single_rank.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/ranks.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::text_of;

Deadline soon() { return Deadline::after_ms(20'000); }

TEST(RankList, NamesFewAndCountsMany) {
  EXPECT_EQ(rank_list({2}), "rank 2");
  EXPECT_EQ(rank_list({2, 5}), "ranks 2 and 5");
  EXPECT_EQ(rank_list({2, 5, 7}), "ranks 2, 5 and 7");
  EXPECT_EQ(rank_list({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(Solo, ReturnsItsOwnMessage) {
  SingleRankBootstrap solo;
  EXPECT_EQ(solo.rank(), 0);
  EXPECT_EQ(solo.size(), 1);
  EXPECT_THAT(solo.all_gather("me", soon()).value(), ElementsAre("me"));
  EXPECT_EQ(solo.all_gather(std::string(kGatherMessageLimit + 1, 'x'), soon()).status().code(), Code::invalid_argument);
}

// An all_gather as a user would write it, through memory, for threads.
struct UserGather {
  explicit UserGather(int count) : size(count), barrier(count) {}
  int size;
  std::barrier<> barrier;
  std::vector<std::string> slots = std::vector<std::string>(64);
  int swapped = -1;  // this rank's part and the next one are swapped
  int refused = -1;  // this rank's call fails
};

struct UserRank {
  UserGather* gather;
  int rank;
};

int user_all_gather(const void* mine, void* all, std::size_t size, void* argument) {
  const auto& self = *static_cast<UserRank*>(argument);
  UserGather& gather = *self.gather;
  int place = self.rank;
  if (place == gather.swapped) {
    ++place;
  } else if (gather.swapped >= 0 && place == gather.swapped + 1) {
    --place;
  }
  gather.slots[static_cast<std::size_t>(place)].assign(static_cast<const char*>(mine), size);
  gather.barrier.arrive_and_wait();
  for (int index = 0; index < gather.size; ++index) {
    const std::string& slot = gather.slots[static_cast<std::size_t>(index)];
    std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(index) * size, slot.data(), size);
  }
  gather.barrier.arrive_and_wait();
  return self.rank == gather.refused ? 7 : 0;
}

std::vector<Answer> gather_by_callback(UserGather& gather, std::vector<std::string> messages) {
  return as_threads(gather.size, [&](Rank rank) -> Answer {
    UserRank self{&gather, rank};
    auto bootstrap = CallbackBootstrap::create({user_all_gather, &self}, rank, gather.size);
    if (!bootstrap.ok()) return bootstrap.status();
    return bootstrap->all_gather(messages[static_cast<std::size_t>(rank)], soon());
  });
}

TEST(Callback, GathersUnevenMessages) {
  UserGather gather(3);
  const std::string binary("a\0b", 3);
  for (const Answer& answer : gather_by_callback(gather, {"", binary, std::string(1000, 'z')})) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_THAT(answer.value(), ElementsAre("", binary, std::string(1000, 'z')));
  }
  for (const Answer& answer : gather_by_callback(gather, {"", "", ""})) EXPECT_THAT(answer.value(), ElementsAre("", "", ""));
}

TEST(Callback, DetectsSwappedRanks) {
  UserGather gather(3);
  gather.swapped = 1;
  for (const Answer& answer : gather_by_callback(gather, {"a", "b", "c"})) {
    EXPECT_THAT(text_of(answer), HasSubstr("put rank 2 of 3 at the place of rank 1 of 3"));
  }
}

TEST(Callback, LongMessageIsNamedOnEveryRank) {
  UserGather gather(3);
  for (const Answer& answer : gather_by_callback(gather, {"a", "b", std::string(kGatherMessageLimit + 1, 'x')})) {
    EXPECT_THAT(text_of(answer), HasSubstr("rank 2: a bootstrap message of 1048577 bytes is over the limit"));
  }
}

TEST(Callback, FailureAndBadArguments) {
  UserGather gather(1);
  gather.refused = 0;
  EXPECT_THAT(text_of(gather_by_callback(gather, {"a"})[0]), HasSubstr("returned 7 on rank 0"));
  EXPECT_EQ(CallbackBootstrap::create({nullptr, nullptr}, 0, 1).status().code(), Code::invalid_argument);
  EXPECT_EQ(CallbackBootstrap::create({user_all_gather, nullptr}, 2, 2).status().code(), Code::invalid_argument);
  EXPECT_EQ(CallbackBootstrap::create({user_all_gather, nullptr}, 0, 0).status().code(), Code::invalid_argument);
}

// So the key of a job needs more than rank 0's proposal.
TEST(Callback, IsReadableByOthersAndThreadsAreNot) {
  UserRank self{};
  EXPECT_TRUE(CallbackBootstrap::create({user_all_gather, &self}, 0, 1).value().readable_by_others());
  EXPECT_FALSE(InProcessBootstrap(std::make_shared<InProcessHub>(1), 0).readable_by_others());
}

TEST(InProcess, ManyRounds) {
  constexpr int kRanks = 5;
  auto hub = std::make_shared<InProcessHub>(kRanks);
  const auto answers = as_threads(kRanks, [&](Rank rank) -> Answer {
    InProcessBootstrap bootstrap(hub, rank);
    for (int round = 0; round < 200; ++round) {
      auto all = bootstrap.all_gather(std::to_string(round * rank), soon());
      if (!all.ok()) return all;
      for (int other = 0; other < kRanks; ++other) {
        EXPECT_EQ((*all)[static_cast<std::size_t>(other)], std::to_string(round * other));
      }
    }
    return std::vector<std::string>{};
  });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
}

TEST(InProcess, DeadlineNamesTheMissing) {
  EXPECT_EQ(testing::with_growing_time([](std::uint64_t ms) {
              auto hub = std::make_shared<InProcessHub>(4);
              InProcessBootstrap absent(hub, 3);
              const auto answers = as_threads(2, [&](Rank rank) -> Answer {
                InProcessBootstrap bootstrap(hub, rank);
                return bootstrap.all_gather("x", Deadline::after_ms(rank == 0 ? ms : 30'000));
              });
              std::string problem;
              for (const Answer& answer : answers) {
                EXPECT_EQ(answer.status().code(), Code::timeout);
                problem += testing::lacks(text_of(answer), "ranks 2 and 3 of 4 did not join");
              }
              EXPECT_EQ(text_of(absent.all_gather("late", soon())), text_of(answers[0]));
              return problem;
            }),
            "");
}

TEST(InProcess, LeavingIsNoticedAtOnce) {
  auto hub = std::make_shared<InProcessHub>(3);
  const auto answers = as_threads(3, [&](Rank rank) -> Answer {
    InProcessBootstrap bootstrap(hub, rank);
    if (rank == 1) return failure(Code::internal, "gave up");
    return bootstrap.all_gather("x", soon());
  });
  EXPECT_THAT(text_of(answers[0]), HasSubstr("rank 1 has left"));
  EXPECT_THAT(text_of(answers[2]), HasSubstr("rank 1 has left"));
}

TEST(InProcess, WrongRanks) {
  auto hub = std::make_shared<InProcessHub>(2);
  InProcessBootstrap outside(hub, 2);
  EXPECT_THAT(text_of(outside.all_gather("x", soon())), HasSubstr("rank 2 is out of range"));
  auto other = std::make_shared<InProcessHub>(3);
  const auto answers = as_threads(2, [&](Rank) -> Answer { return other->all_gather(1, "x", soon()); });
  for (const Answer& answer : answers) EXPECT_THAT(text_of(answer), HasSubstr("rank 1 joined twice"));
}

}  // namespace
}  // namespace seto

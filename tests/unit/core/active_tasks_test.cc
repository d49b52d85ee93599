// Tasks of one sequence: how often each is driven, and in which order.

#include "src/core/progress/active_tasks.h"

#include <memory>
#include <vector>

#include "tests/unit/core/scripted.h"

namespace seto::testing {
namespace {

using Step = Task::Step;

// The operations of a scripted communicator: they begin in order, two at a time, and each moves for a few rounds.
struct Operations {
  static constexpr std::uint64_t kWindow = 2;
  static constexpr int kMoves = 3;

  TaskSequence sequence;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::uint64_t calls = 0;  // of advance() and inspect()
  bool failed = false;
};

class Operation final : public Task {
 public:
  Operation(Operations& all, std::uint64_t number) : Task(&all.sequence, number), all_(all), number_(number) {}

  Step advance() override {
    ++all_.calls;
    if (!begun_) {
      if (number_ != all_.begun + 1 || number_ > all_.done + Operations::kWindow) return Step::blocked;
      all_.begun = number_;
      begun_ = true;
    }
    if (++moves_ < Operations::kMoves) return Step::moved;
    EXPECT_EQ(number_, ++all_.done);
    end({});
    return Step::ended;
  }
  bool inspect() override {
    ++all_.calls;
    if (all_.failed) end(failure(Code::aborted, "failed"));
    return all_.failed;
  }
  [[nodiscard]] bool begun() const override { return begun_; }

 private:
  Operations& all_;
  const std::uint64_t number_;
  int moves_ = 0;
  bool begun_ = false;
};

class Sequences : public ::testing::Test {
 protected:
  std::vector<std::unique_ptr<Operation>> operations(Operations& all, std::uint64_t count) {
    std::vector<std::unique_ptr<Operation>> made;
    for (std::uint64_t number = 1; number <= count; ++number) made.push_back(std::make_unique<Operation>(all, number));
    return made;
  }

  ScriptedSleeper sleeper_;
  Progress progress_{sleeper_, 8};
};

std::uint64_t ended(const std::vector<std::unique_ptr<Operation>>& tasks) {
  std::uint64_t count = 0;
  for (const auto& task : tasks) count += task->ended() ? 1 : 0;
  return count;
}

TEST_F(Sequences, DriveEachTaskAFewTimesHoweverManyWait) {
  for (const std::uint64_t count : {100, 1'000, 4'000}) {
    Operations all;
    const auto tasks = operations(all, count);
    for (const auto& task : tasks) progress_.join(*task);
    for (const auto& task : tasks) EXPECT_TRUE(progress_.wait(*task, Deadline::after_ms(kPatienceMs)));
    EXPECT_EQ(all.done, count);
    // Each moves three times, and is looked at while it is the first that has not begun.
    EXPECT_LE(all.calls, 8 * count) << count << " tasks";
  }
}

// As tasks of two host streams of one communicator.
TEST_F(Sequences, MayArriveInAnyOrder) {
  Operations all;
  const auto tasks = operations(all, 9);
  for (const std::size_t index : {4, 5, 2, 8, 3, 0, 7, 6, 1}) progress_.join(*tasks[index]);
  for (int passes = 0; passes < 100; ++passes) (void)progress_.pass();
  EXPECT_EQ(ended(tasks), 9U);
  EXPECT_TRUE(progress_.idle());
}

TEST_F(Sequences, DoNotHoldEachOtherUp) {
  Operations stuck, free;
  const auto late = operations(stuck, 3);
  const auto tasks = operations(free, 3);
  progress_.join(*late[1]);  // its first has not arrived
  for (const auto& task : tasks) progress_.join(*task);
  for (int passes = 0; passes < 100; ++passes) (void)progress_.pass();
  EXPECT_EQ(ended(tasks), 3U);
  EXPECT_EQ(ended(late), 0U);
  progress_.join(*late[0]);
  for (int passes = 0; passes < 100; ++passes) (void)progress_.pass();
  EXPECT_EQ(ended(late), 2U);
}

TEST_F(Sequences, EndTogetherAfterAFailure) {
  Operations all;
  const auto tasks = operations(all, 1'000);
  for (std::size_t index = 1; index < tasks.size(); ++index) progress_.join(*tasks[index]);  // the first never arrives
  (void)progress_.pass();
  all.failed = true;
  (void)progress_.pass();
  EXPECT_EQ(ended(tasks), 999U);
  EXPECT_TRUE(progress_.idle());
}

// A chain whose tasks have all ended is forgotten, and the sequence begins another.
TEST_F(Sequences, GoOnAfterAPause) {
  Operations one, two;
  const auto first = operations(one, 20);
  const auto second = operations(two, 20);
  for (std::size_t begin = 0; begin < 20; begin += 5) {
    for (std::size_t index = begin; index < begin + 5; ++index) {
      progress_.join(*first[index]);
      progress_.join(*second[index]);
    }
    for (int passes = 0; passes < (begin % 2 == 0 ? 100 : 2); ++passes) (void)progress_.pass();
  }
  for (int passes = 0; passes < 100; ++passes) (void)progress_.pass();
  EXPECT_EQ(ended(first), 20U);
  EXPECT_EQ(ended(second), 20U);
}

}  // namespace
}  // namespace seto::testing

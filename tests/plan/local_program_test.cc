// Local programs, which each rank makes alone, joined and checked by the verifier.

#include "src/plan/local_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "src/plan/verify.h"

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;
constexpr std::uint64_t kSeed = 7;

struct Job {
  int ranks = 1;
  std::vector<std::vector<LocalTransfer>> calls;  // by rank
  std::vector<std::uint32_t> messages;            // [from * ranks + to]

  explicit Job(int rank_count)
      : ranks(rank_count),
        calls(static_cast<std::size_t>(ranks)),
        messages(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  void add(Rank from, Rank to) {
    calls[static_cast<std::size_t>(from)].push_back({Direction::send, to});
    calls[static_cast<std::size_t>(to)].push_back({Direction::receive, from});
    ++messages[static_cast<std::size_t>(from * ranks + to)];
  }

  // Calls of one rank may come in any order, but sends and receives of a pair keep theirs, so the count identifies each message.
  void shuffle(std::mt19937_64& random) {
    for (auto& list : calls) std::shuffle(list.begin(), list.end(), random);
  }
};

Plan joined(const Job& job) {
  Plan plan;
  plan.name = "local";
  const std::uint32_t pieces = std::max(1U, *std::max_element(job.messages.begin(), job.messages.end()));
  plan.shape = {Collective::all_to_all, job.ranks, 0, pieces, Finish::none};
  for (Rank rank = 0; rank < job.ranks; ++rank) {
    Result<LocalProgram> local = local_program(rank, job.ranks, job.calls[static_cast<std::size_t>(rank)], pieces);
    EXPECT_TRUE(local.ok()) << local.status().text();
    if (local.ok()) plan.programs.push_back(std::move(local.value().program));
  }
  return plan;
}

Status verdict(const Plan& plan, const Job& job) {
  VerifyRequest request;
  request.messages = job.messages;
  return verify(plan, request).status();
}

Job random_job(std::mt19937_64& random) {
  Job job(1 + static_cast<int>(random() % 6));
  const auto ranks = static_cast<std::uint64_t>(job.ranks);
  for (std::uint64_t i = random() % 40; i > 0; --i)
    job.add(static_cast<Rank>(random() % ranks), static_cast<Rank>(random() % ranks));
  job.shuffle(random);
  return job;
}

TEST(LocalProgram, RandomGroupsAreRightWhenJoined) {
  RecordProperty("seed", kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 300; ++i) {
    const Job job = random_job(random);
    const Status status = verdict(joined(job), job);
    EXPECT_TRUE(status.ok()) << status.text() << " in job " << i << " of seed " << kSeed;
  }
}

TEST(LocalProgram, AllToAllWithHolesIsRightWhenJoined) {
  std::mt19937_64 random(kSeed);
  for (int ranks = 1; ranks <= 9; ++ranks) {
    Job job(ranks);
    for (Rank from = 0; from < ranks; ++from)
      for (Rank to = 0; to < ranks; ++to)
        if (random() % 3 > 0) job.add(from, to);
    EXPECT_TRUE(verdict(joined(job), job).ok()) << ranks;
  }
}

TEST(LocalProgram, AMissingReceiveOrASwappedPairIsDetected) {
  std::mt19937_64 random(kSeed);
  int lost = 0;
  for (int i = 0; i < 200; ++i) {
    Job job = random_job(random);
    auto& calls = job.calls[random() % job.calls.size()];
    const auto rank = static_cast<Rank>(&calls - job.calls.data());
    const auto receive = std::find_if(calls.begin(), calls.end(), [&](const LocalTransfer& call) {
      return call.direction == Direction::receive && call.peer != rank;
    });
    if (receive == calls.end()) continue;
    calls.erase(receive);
    EXPECT_FALSE(verdict(joined(job), job).ok());
    ++lost;
  }
  EXPECT_GT(lost, 50);

  Job pair(2);
  pair.add(0, 1);
  pair.add(0, 1);
  Plan plan = joined(pair);
  std::swap(plan.programs[1].operands[1], plan.programs[1].operands[3]);  // the first message goes to the place of the second
  EXPECT_FALSE(verdict(plan, pair).ok());
}

TEST(LocalProgram, UnusedChunksMustNotBeWritten) {
  Job job(2);
  job.add(0, 1);
  job.add(0, 1);
  const Plan plan = joined(job);
  job.messages[1] = 1;
  EXPECT_FALSE(verdict(plan, job).ok());
}

TEST(LocalProgram, KeepsTheOrderOfEachPairInItsLane) {
  const std::vector<LocalTransfer> calls = {
      {Direction::send, 1}, {Direction::receive, 2}, {Direction::send, 1}, {Direction::send, 2}};
  Result<LocalProgram> local = local_program(0, 3, calls, 0);
  ASSERT_TRUE(local.ok());
  const Program& program = local.value().program;
  ASSERT_EQ(program.lanes.size(), 3U);
  EXPECT_EQ(program.fan, 3U);
  std::vector<std::uint32_t> moved;
  for (const LocalProgram::Moved& step : local.value().moved) moved.push_back(std::min(step.source, step.target));
  EXPECT_THAT(moved, ::testing::ElementsAre(0, 2, 1, 3));
}

TEST(LocalProgram, NamesInvalidTransfers) {
  const std::vector<LocalTransfer> lone = {{Direction::send, 0}};
  EXPECT_THAT(std::string(local_program(0, 2, lone, 0).status().text()), ::testing::HasSubstr("to itself"));
  const std::vector<LocalTransfer> far = {{Direction::send, 2}};
  EXPECT_THAT(std::string(local_program(0, 2, far, 0).status().text()), ::testing::HasSubstr("peer: 2"));
}

}  // namespace
}  // namespace seto

// The host engine with codecs, over every circle: sums that the codec holds are right to the bit, all others within the bound;
// every rank ends with the same bits, however the message was sliced.

#include <cmath>
#include <cstdio>
#include <random>
#include <utility>

#include "tests/conformance/engine_world.h"
#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kPatience = 200'000;

// Of every algorithm that takes a codec for so many ranks.
std::vector<Job> coded_jobs(int ranks, const std::vector<Codec>& codecs, const std::vector<DataType>& types,
                            const std::vector<std::uint64_t>& counts) {
  std::vector<Job> jobs;
  for (const Algorithm& algorithm : algorithms())
    for (const std::uint64_t count : counts) {
      const std::size_t turn = jobs.size();
      Job job{&algorithm, ranks, types[turn % types.size()], ReduceOp::sum, count};
      job.codec = codecs[turn / 2 % codecs.size()];
      job.slice_elements = 200 + turn % 3 * 200;
      job.root = static_cast<Rank>(turn % static_cast<std::size_t>(ranks));
      job.order = turn % 4 == 3 ? StepOrder::readiness : StepOrder::skewed;
      job.in_place = turn % 3 == 1 && shared_at(job, job.root) ? InPlace::yes : InPlace::no;
      if (algorithm.refuses(shape_of(job), tiers_for(job)).empty() && algorithm.encodings(shape_of(job), tiers_for(job)) > 0)
        jobs.push_back(job);
    }
  return jobs;
}

double number(DataType type, const std::byte* at) {
  if (type == DataType::float64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint32_t bits = 0;
  std::memcpy(type == DataType::bfloat16 ? reinterpret_cast<std::byte*>(&bits) + 2 : reinterpret_cast<std::byte*>(&bits), at,
              size_of(type));
  return std::bit_cast<float>(bits);
}

class CodedEngine : public OneThread {
 protected:
  static constexpr std::uint64_t kOperations = 3;

  // Each rank's result of each operation.
  [[nodiscard]] std::vector<std::vector<std::byte>> results(const Job& job, std::uint64_t seed, unsigned most_delay,
                                                            std::uint64_t operations = kOperations) const {
    return results_over(*GetParam(), job, seed, most_delay, operations);
  }
  static std::vector<std::vector<std::byte>> results_over(const CircleTransport& transport, const Job& job, std::uint64_t seed,
                                                          unsigned most_delay, std::uint64_t operations = kOperations) {
    SCOPED_TRACE(job.text() + ", seed " + std::to_string(seed));
    World world(transport, job,
                [&](CircleMember& member) { return Faults{.seed = seed * 8 + member.index(), .most_delay = most_delay}; });
    std::vector<std::vector<std::byte>> all;
    if (!world.drive(operations, seed, kPatience)) {
      for (const auto& worker : world.workers_) ADD_FAILURE() << "done " << worker->done() << ": " << worker->waits_at().text;
      return all;
    }
    for (const auto& circle : world.circles_) EXPECT_TRUE(circle->failure().ok()) << circle->failure().text();
    for (const auto& worker : world.workers_) {
      EXPECT_FALSE(worker->touched_late());
      for (std::uint64_t operation = 1; operation <= operations; ++operation) all.push_back(worker->result(operation));
    }
    return all;
  }
};

TEST_P(CodedEngine, IsExactWhereTheCodecIs) {
  std::uint64_t seed = 0;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const Job& job :
         coded_jobs(ranks, {Codec::fp16, Codec::bf16}, {DataType::float32, DataType::float64}, {0, 1, 50, 3000})) {
      SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed));
      World world(*GetParam(), job, [&](CircleMember& member) {
        return Faults{.seed = seed * 8 + member.index(), .most_delay = static_cast<unsigned>(seed % 4)};
      });
      ASSERT_TRUE(world.drive(kOperations, seed, kPatience));
      for (const auto& worker : world.workers_) ASSERT_EQ(worker->wrong(), 0U);
    }
}

// Thirds of a step: nothing here is exact.
TEST_P(CodedEngine, GivesEveryRankTheSameBitsWithinTheBound) {
  std::uint64_t seed = 1000;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const Job& job : coded_jobs(ranks, {Codec::int8, Codec::e4m3, Codec::int4, Codec::e5m2},
                                     {DataType::float32, DataType::bfloat16, DataType::float64}, {700, 3000})) {
      SCOPED_TRACE(job.text());
      const auto all = results(job, ++seed, 2);
      ASSERT_EQ(all.size(), kOperations * static_cast<std::uint64_t>(ranks));
      const std::size_t element = size_of(job.type);
      // Each contribution, or what was added up of them, once for each encoding that the table names; a bf16 sum rounds, too.
      const double largest = 2.0 * ranks;
      const double again = error_bound(*job.codec, job.type, Rounding::nearest, largest, largest);
      const double once = error_bound(*job.codec, job.type, Rounding::nearest, 2, 2);
      const double bound = once * ranks + again * job.algorithm->encodings(shape_of(job), tiers_for(job)) + largest / 128;
      for (Rank rank = 0; rank < ranks; ++rank)
        for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
          const auto& got = all[static_cast<std::size_t>(rank) * kOperations + operation - 1];
          if (job.algorithm->collective == Collective::all_reduce) {
            ASSERT_EQ(got, all[operation - 1]) << "rank " << rank << " has other bits";
          }
          for (std::uint64_t i = 0; i < got.size() / element; ++i) {
            const std::optional<int> right = expected(job, rank, i, operation);
            if (!right) continue;
            ASSERT_NEAR(number(job.type, &got[i * element]), *right, bound) << "rank " << rank << ", element " << i;
          }
        }
    }
}

TEST_P(CodedEngine, GivesTheSameBitsHoweverItIsSliced) {
  std::uint64_t seed = 2000;
  for (Job job : coded_jobs(3, {Codec::int8, Codec::fp16}, {DataType::float32}, {5000})) {
    const auto whole = [&](std::uint64_t slice) {
      job.slice_elements = slice;
      return results(job, ++seed, 0);
    };
    const auto sliced = whole(1);  // of a block, then
    EXPECT_EQ(sliced, whole(700)) << job.text();
    EXPECT_EQ(sliced, whole(100'000)) << job.text();
  }
}

// How far the sum of an element's results of all operations is from the exact one, at most, over all ranks.
double worst_of_sums(const Job& job, const std::vector<std::vector<std::byte>>& all, std::uint64_t operations) {
  double most = 0;
  const std::size_t element = size_of(job.type);
  for (Rank rank = 0; rank < job.ranks; ++rank) {
    const auto* const own = &all[static_cast<std::size_t>(rank) * operations];
    for (std::uint64_t i = 0; i < own[0].size() / element; ++i) {
      double off = 0;
      for (std::uint64_t operation = 1; operation <= operations; ++operation)
        if (const std::optional<int> right = expected(job, rank, i, operation))
          off += number(job.type, &own[operation - 1][i * element]) - *right * job.unit;
      most = std::max(most, std::abs(off));
    }
  }
  return most;
}

// Over many operations results add up to the exact sums but for what one operation leaves out, on every rank to the same bits, in
// any slices; and without residuals they do not. Recursive doubling forgets what later encodings leave out.
TEST_P(CodedEngine, OwesWhatItLeavesOut) {
  constexpr std::uint64_t kMany = 48;
  std::uint64_t seed = 4000;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const auto& [codec, type] : {std::pair(Codec::int4, DataType::float32), std::pair(Codec::int4, DataType::bfloat16),
                                      std::pair(Codec::e5m2, DataType::float64), std::pair(Codec::e5m2, DataType::float32)})
      for (Job job : coded_jobs(ranks, {codec}, {type}, {300})) {
        if (job.algorithm->name == "recursive_doubling") continue;
        job.unit = 1.3671875;  // bf16 holds it, no coarser grid does
        job.owes = true;
        SCOPED_TRACE(job.text());
        const auto all = results(job, ++seed, 2, kMany);
        ASSERT_EQ(all.size(), kMany * static_cast<std::uint64_t>(ranks));
        const double largest = 2 * job.unit * ranks * 1.3;  // a sum, and what is owed of it
        const double once = error_bound(codec, type, Rounding::nearest, largest, largest);
        // A sum of bf16 rounds on its own, each time.
        const double type_rounds = type == DataType::bfloat16 ? kMany * largest / 512 : 1e-3;
        EXPECT_LE(worst_of_sums(job, all, kMany), once * ranks + type_rounds);
        for (std::size_t i = kMany; i < all.size() && job.algorithm->collective == Collective::all_reduce; ++i)
          ASSERT_EQ(all[i], all[i % kMany]) << "result " << i << " has other bits";
        job.slice_elements = 100'000;
        EXPECT_EQ(all, results(job, ++seed, 1, kMany)) << "in other slices";
        job.owes = false;
        EXPECT_GT(worst_of_sums(job, results(job, ++seed, 0, kMany), kMany), 2 * worst_of_sums(job, all, kMany));
      }
}

INSTANTIATE_TEST_SUITE_P(All, CodedEngine, ::testing::ValuesIn(one_thread_transports()), name_of_one);

// Everything at random: shapes, algorithms, codecs, slices, delays, the order of turns.
Job random_job(std::mt19937_64& random) {
  constexpr Codec kCodecs[] = {Codec::fp16, Codec::bf16, Codec::e4m3, Codec::e5m2, Codec::int8, Codec::int4};
  constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::bfloat16};
  for (;;) {
    Job job;
    job.algorithm = &algorithms()[random() % algorithms().size()];
    job.ranks = 2 + static_cast<int>(random() % 5);
    job.type = kTypes[random() % std::size(kTypes)];
    job.codec = kCodecs[random() % std::size(kCodecs)];
    job.count = random() % 4 == 0 ? random() % 16 : random() % 2'500;
    job.slice_elements = 1 + random() % 1'000;
    job.root = static_cast<Rank>(random() % static_cast<std::uint64_t>(job.ranks));
    job.order = random() % 4 == 0 ? StepOrder::readiness : StepOrder::skewed;
    job.in_place = random() % 2 == 0 && shared_at(job, job.root) ? InPlace::yes : InPlace::no;
    const Tiers tiers = tiers_for(job);
    if (encodes(*job.codec, job.type) && job.algorithm->refuses(shape_of(job), tiers).empty() &&
        job.algorithm->encodings(shape_of(job), tiers) > 0)
      return job;
  }
}

class CodedEngineAtRandom : public CodedEngine {
 protected:
  // Where several ranks have a result they have the same; where one has, it is the same with other slices.
  void try_cases(std::uint64_t cases, std::uint64_t seed) const {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    std::uint64_t compared = 0;
    for (std::uint64_t one = 0; one < cases && !HasFailure(); ++one) {
      Job job = random_job(random);
      SCOPED_TRACE(job.text() + ", case " + std::to_string(one));
      const auto all = results(job, random(), static_cast<unsigned>(random() % 4));
      ASSERT_EQ(all.size(), kOperations * static_cast<std::uint64_t>(job.ranks));
      ++compared;
      if (job.algorithm->collective == Collective::all_reduce) {
        for (std::size_t i = kOperations; i < all.size(); ++i) ASSERT_EQ(all[i], all[i % kOperations]) << "result " << i;
        continue;
      }
      job.slice_elements = 1 + random() % 1'000;
      ASSERT_EQ(all, results(job, random(), static_cast<unsigned>(random() % 4))) << "in other slices";
    }
    EXPECT_EQ(compared, cases);
    RecordProperty("cases", std::to_string(compared));
  }
};

TEST_P(CodedEngineAtRandom, EndsWithTheSameBits) { try_cases(4'000 / kLess, 20261122); }

INSTANTIATE_TEST_SUITE_P(All, CodedEngineAtRandom, ::testing::ValuesIn(one_thread_transports()), name_of_one);

class CodedEngineOverSockets : public CodedEngine {};

TEST_P(CodedEngineOverSockets, GivesTheBitsThatSharedMemoryGives) {
  constexpr std::uint64_t seed = 3000;
  for (const Job& job : coded_jobs(3, {Codec::int8, Codec::fp16}, {DataType::float32}, {5000}))
    EXPECT_EQ(results(job, seed, 0), results_over(*one_thread_transports().front(), job, seed, 0)) << job.text();
}

class CodedEngineAtRandomOverSockets : public CodedEngineAtRandom {};

// Sockets cut frames where they like, within blocks, too.
TEST_P(CodedEngineAtRandomOverSockets, EndsWithTheSameBits) { try_cases(1'500 / kLess, 20261123); }

INSTANTIATE_TEST_SUITE_P(All, CodedEngineAtRandomOverSockets, ::testing::Values(&tcp_transport(1), &tcp_transport(3)),
                         name_of_one);
INSTANTIATE_TEST_SUITE_P(All, CodedEngineOverSockets, ::testing::Values(&tcp_transport(1), &tcp_transport(3)), name_of_one);

}  // namespace
}  // namespace seto::support

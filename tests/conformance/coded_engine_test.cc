// Executors with codecs. The host executor runs over every transport: sums that the codec can represent are exact, all others are
// within the bound, and every rank ends with the same bits, for any slice size. The block interpreter gives the same bits.

#include <cmath>
#include <cstdio>
#include <random>
#include <utility>

#include "src/engine/block_interpreter.h"
#include "tests/conformance/engine_world.h"
#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

// One job for every algorithm that supports a codec with this number of ranks.
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
  static std::vector<std::vector<std::byte>> results_over(const PeerGroupTransport& transport, const Job& job, std::uint64_t seed,
                                                          unsigned most_delay, std::uint64_t operations = kOperations) {
    SCOPED_TRACE(job.text() + ", seed " + std::to_string(seed));
    World world(transport, job,
                [&](PeerGroupMember& member) { return Faults{.seed = seed * 8 + member.index(), .most_delay = most_delay}; });
    std::vector<std::vector<std::byte>> all;
    if (!world.drive(operations, seed, kPatience)) {
      for (const auto& worker : world.workers_) ADD_FAILURE() << "done " << worker->done() << ": " << worker->waits_at().text;
      return all;
    }
    for (const auto& peer_group : world.peer_groups_) EXPECT_TRUE(peer_group->failure().ok()) << peer_group->failure().text();
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
      World world(*GetParam(), job, [&](PeerGroupMember& member) {
        return Faults{.seed = seed * 8 + member.index(), .most_delay = static_cast<unsigned>(seed % 4)};
      });
      ASSERT_TRUE(world.drive(kOperations, seed, kPatience));
      for (const auto& worker : world.workers_) ASSERT_EQ(worker->wrong(), 0U);
    }
}

// Values that no codec represents exactly.
TEST_P(CodedEngine, GivesEveryRankTheSameBitsWithinTheBound) {
  std::uint64_t seed = 1000;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const Job& job : coded_jobs(ranks, {Codec::int8, Codec::e4m3, Codec::int4, Codec::e5m2},
                                     {DataType::float32, DataType::bfloat16, DataType::float64}, {700, 3000})) {
      SCOPED_TRACE(job.text());
      const auto all = results(job, ++seed, 2);
      ASSERT_EQ(all.size(), kOperations * static_cast<std::uint64_t>(ranks));
      const std::size_t element = size_of(job.type);
      // The error of each contribution or partial sum, once per encoding that the table names; a bf16 sum also rounds.
      const double largest = 2.0 * ranks;
      const double again = error_bound(*job.codec, job.type, Rounding::nearest, largest, largest);
      const double once = error_bound(*job.codec, job.type, Rounding::nearest, 2, 2);
      const double bound = once * ranks + again * job.algorithm->encodings(shape_of(job), tiers_for(job)) + largest / 128;
      for (Rank rank = 0; rank < ranks; ++rank)
        for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
          const auto& got = all[static_cast<std::size_t>(rank) * kOperations + operation - 1];
          if (job.algorithm->collective == Collective::all_reduce) {
            ASSERT_EQ(got, all[operation - 1]) << "rank " << rank << " has different bits";
          }
          for (std::uint64_t i = 0; i < got.size() / element; ++i) {
            const std::optional<int> right = expected(job, rank, i, operation);
            if (!right) continue;
            ASSERT_NEAR(number(job.type, &got[i * element]), *right, bound) << "rank " << rank << ", element " << i;
          }
        }
    }
}

TEST_P(CodedEngine, GivesTheSameBitsForAnySliceSize) {
  std::uint64_t seed = 2000;
  for (Job job : coded_jobs(3, {Codec::int8, Codec::fp16}, {DataType::float32}, {5000})) {
    const auto whole = [&](std::uint64_t slice) {
      job.slice_elements = slice;
      return results(job, ++seed, 0);
    };
    const auto sliced = whole(1);  // the slice size is rounded up to a block
    EXPECT_EQ(sliced, whole(700)) << job.text();
    EXPECT_EQ(sliced, whole(100'000)) << job.text();
  }
}

// The largest error, over all ranks and elements, of the sum of an element's results over all operations.
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

// With residuals, the sum of the results of many operations differs from the exact sum by the error of one operation only, with
// the same bits on every rank and for any slice size; without residuals it does not. Recursive doubling drops errors of later
// encodings.
TEST_P(CodedEngine, AddsEncodingErrorsToLaterResults) {
  constexpr std::uint64_t kMany = 48;
  std::uint64_t seed = 4000, turn = 0;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const auto& [codec, type] : {std::pair(Codec::int4, DataType::float32), std::pair(Codec::int4, DataType::bfloat16),
                                      std::pair(Codec::e5m2, DataType::float64), std::pair(Codec::e5m2, DataType::float32)})
      for (Job job : coded_jobs(ranks, {codec}, {type}, {300})) {
        if (job.algorithm->name == "recursive_doubling" || ++turn % kEvery != 0) continue;
        job.unit = 1.3671875;  // exact in bf16 and in no coarser format
        job.owes = true;
        SCOPED_TRACE(job.text());
        const auto all = results(job, ++seed, 2, kMany);
        ASSERT_EQ(all.size(), kMany * static_cast<std::uint64_t>(ranks));
        const double largest = 2 * job.unit * ranks * 1.3;  // a sum with its residual
        const double once = error_bound(codec, type, Rounding::nearest, largest, largest);
        // A sum in bf16 also rounds, in every operation.
        const double type_rounds = type == DataType::bfloat16 ? kMany * largest / 512 : 1e-3;
        EXPECT_LE(worst_of_sums(job, all, kMany), once * ranks + type_rounds);
        for (std::size_t i = kMany; i < all.size() && job.algorithm->collective == Collective::all_reduce; ++i)
          ASSERT_EQ(all[i], all[i % kMany]) << "result " << i << " has different bits";
        job.slice_elements = 100'000;
        EXPECT_EQ(all, results(job, ++seed, 1, kMany)) << "with other slices";
        job.owes = false;
        EXPECT_GT(worst_of_sums(job, results(job, ++seed, 0, kMany), kMany), 2 * worst_of_sums(job, all, kMany));
      }
}

INSTANTIATE_TEST_SUITE_P(All, CodedEngine, ::testing::ValuesIn(one_thread_transports()), name_of_one);

class CodedBlocks : public CodedEngine {
 protected:
  // Each rank's result of each operation, as results() gives them.
  static std::vector<std::vector<std::byte>> blocks_results(const Job& job) {
    std::vector<BoundProgram> programs;
    std::vector<std::vector<std::byte>> residuals;
    for (Rank rank = 0; rank < job.ranks; ++rank) {
      programs.push_back(bound_program(job, rank));
      residuals.emplace_back(sizes_of(job).input * size_of(residual_type(job.type)));
    }
    const auto ranks = static_cast<std::size_t>(job.ranks);
    std::vector<std::vector<std::byte>> all(ranks * kOperations);
    for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
      std::vector<Buffers> buffers;
      std::vector<BlockBuffers> pointers;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Buffers& own = buffers.emplace_back(job, static_cast<Rank>(rank), operation);
        pointers.push_back({own.input, own.output, nullptr, job.owes ? residuals[rank].data() : nullptr});
      }
      const Status status = run_blocks({.programs = programs, .buffers = pointers, .capacity = 2, .timeout_ms = 100'000});
      EXPECT_TRUE(status.ok()) << status.text();
      for (std::size_t rank = 0; rank < ranks; ++rank) all[rank * kOperations + operation - 1] = buffers[rank].result(job);
    }
    return all;
  }
};

TEST_P(CodedBlocks, GiveTheBitsOfTheHostExecutor) {
  std::uint64_t seed = 5000;
  std::uint64_t compared = 0;
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (Job job : coded_jobs(ranks, {Codec::int8, Codec::fp16, Codec::int4, Codec::e5m2}, {DataType::float32, DataType::float64},
                              {1, 700, 1500}))
      for (const bool owes : {false, true}) {
        job.unit = 1.3671875;  // what a codec leaves out differs from rank to rank
        job.owes = owes;
        SCOPED_TRACE(job.text());
        const auto host = results(job, ++seed, 0);
        ASSERT_EQ(host.size(), kOperations * static_cast<std::uint64_t>(ranks));
        ASSERT_EQ(blocks_results(job), host);
        ++compared;
      }
  EXPECT_GT(compared, 100U);
}

INSTANTIATE_TEST_SUITE_P(OneTransport, CodedBlocks, ::testing::Values(one_thread_transports().front()), name_of_one);

// Everything is random: shapes, algorithms, codecs, slices, delays, the order of turns.
Job random_job(std::mt19937_64& random) {
  constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::bfloat16};
  for (;;) {
    Job job;
    job.algorithm = &algorithms()[random() % algorithms().size()];
    job.ranks = 2 + static_cast<int>(random() % 5);
    job.type = kTypes[random() % std::size(kTypes)];
    job.codec = static_cast<Codec>(random() % kCodecCount);
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
  // If several ranks have a result, it is the same; if one rank has it, it is the same with another slice size.
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
      ASSERT_EQ(all, results(job, random(), static_cast<unsigned>(random() % 4))) << "with other slices";
    }
    EXPECT_EQ(compared, cases);
    RecordProperty("cases", std::to_string(compared));
  }
};

TEST_P(CodedEngineAtRandom, EndsWithTheSameBits) { try_cases(repetitions(2'000, 400), 20261122); }

INSTANTIATE_TEST_SUITE_P(All, CodedEngineAtRandom, ::testing::ValuesIn(one_thread_transports()), name_of_one);

class CodedEngineOverSockets : public CodedEngine {};

TEST_P(CodedEngineOverSockets, GivesTheSameBitsAsSharedMemory) {
  constexpr std::uint64_t seed = 3000;
  for (const Job& job : coded_jobs(3, {Codec::int8, Codec::fp16}, {DataType::float32}, {5000}))
    EXPECT_EQ(results(job, seed, 0), results_over(*one_thread_transports().front(), job, seed, 0)) << job.text();
}

class CodedEngineAtRandomOverSockets : public CodedEngineAtRandom {};

// Sockets may split frames anywhere, also within blocks.
TEST_P(CodedEngineAtRandomOverSockets, EndsWithTheSameBits) { try_cases(repetitions(500, 150), 20261123); }

INSTANTIATE_TEST_SUITE_P(All, CodedEngineAtRandomOverSockets, ::testing::Values(&tcp_transport(1), &tcp_transport(3)),
                         name_of_one);
INSTANTIATE_TEST_SUITE_P(All, CodedEngineOverSockets,
                         ::testing::Values(&tcp_transport(1), &tcp_transport(3), &cut_transport(false), &cut_rails_transport()),
                         name_of_one);

}  // namespace
}  // namespace seto::support

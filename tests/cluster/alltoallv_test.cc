// all_to_all with parts of any length, through the C API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "tests/support/api_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int32_t>;
using Sizes = std::vector<std::size_t>;
constexpr const char* kGood = "setoSuccess";

class AllToAllv : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, AllToAllv, ::testing::Values(Ranks::as_threads, Ranks::as_processes),
                         [](const auto& tested) { return tested.param == Ranks::as_threads ? "Threads" : "Processes"; });

std::int32_t element(int from, int to, std::size_t index) {
  return from * 1'000'000 + to * 100'000 + static_cast<std::int32_t>(index % 99'991);
}

Sizes offsets_of(const Sizes& counts, std::size_t gap) {
  Sizes offsets;
  std::size_t next = gap;
  for (const std::size_t count : counts) {
    offsets.push_back(next);
    next += count + gap;
  }
  return offsets;
}

// counts[from][to]. The receiver's parts have gaps of three elements between them, the sender's have none.
void exchange_once(ApiRank& own, const std::vector<Sizes>& counts) {
  const auto rank = static_cast<std::size_t>(own.rank);
  const auto ranks = static_cast<std::size_t>(own.ranks);
  Sizes receives;
  for (std::size_t from = 0; from < ranks; ++from) receives.push_back(counts[from][rank]);
  const Sizes offsets = offsets_of(receives, 3);
  Ints out, in(offsets.back() + receives.back() + 3, -1), expected(in.size(), -1);
  for (std::size_t to = 0; to < ranks; ++to)
    for (std::size_t i = 0; i < counts[rank][to]; ++i) out.push_back(element(own.rank, static_cast<int>(to), i));
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t i = 0; i < receives[from]; ++i) expected[offsets[from] + i] = element(static_cast<int>(from), own.rank, i);
  EXPECT_EQ(outcome(setoAllToAllv(out.data(), counts[rank].data(), nullptr, in.data(), receives.data(), offsets.data(), setoInt32,
                                  own.comm, nullptr)),
            kGood);
  EXPECT_EQ(in, expected);
}

TEST_P(AllToAllv, MovesPartsOfEveryLength) {
  static constexpr std::uint64_t kSeed = 5;
  RecordProperty("seed", kSeed);
  for (const int ranks : {1, 2, 3, 5})
    EXPECT_TRUE(run_ranks(GetParam(), ranks,
                          [](ApiRank& own) {
                            std::mt19937_64 random(kSeed);
                            for (int round = 0; round < 12; ++round) {
                              std::vector<Sizes> counts(static_cast<std::size_t>(own.ranks),
                                                        Sizes(static_cast<std::size_t>(own.ranks)));
                              for (Sizes& row : counts)
                                for (std::size_t& count : row)
                                  count = random() % 3 == 0 ? 0 : random() % (round % 3 == 0 ? 90'000 : 200);
                              exchange_once(own, counts);
                            }
                          }))
        << ranks << " ranks, seed " << kSeed;
}

TEST_P(AllToAllv, NamesCountsThatDiffer) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Ints out(100'000, 1), in(100'000);
    const Sizes sends = {0, 90'000};
    const Sizes receives = {own.rank == 1 ? std::size_t{89'999} : std::size_t{0}, 0};
    const Sizes nothing = {0, 0};
    const std::string result = outcome(setoAllToAllv(out.data(), own.rank == 0 ? sends.data() : nothing.data(), nullptr,
                                                     in.data(), receives.data(), nullptr, setoInt32, own.comm, nullptr));
    EXPECT_THAT(result, HasSubstr("90000 int32"));
    EXPECT_THAT(result, HasSubstr("89999 int32"));
  }));
}

// If only the receiver expects a part, it must not receive the part of the next call.
TEST_P(AllToAllv, NeverReceivesAPartOfTheNextCall) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Ints out(4, 7), in(4, -1);
    const Sizes nothing = {0, 0}, to_one = {0, 4}, from_zero = {4, 0};
    if (own.rank == 0) {
      EXPECT_EQ(
          setoAllToAllv(out.data(), nothing.data(), nullptr, in.data(), nothing.data(), nullptr, setoInt32, own.comm, nullptr),
          setoSuccess);
      EXPECT_EQ(
          setoAllToAllv(out.data(), to_one.data(), nullptr, in.data(), nothing.data(), nullptr, setoInt32, own.comm, nullptr),
          setoSuccess);
    } else {
      const std::string result = outcome(
          setoAllToAllv(out.data(), nothing.data(), nullptr, in.data(), from_zero.data(), nullptr, setoInt32, own.comm, nullptr));
      EXPECT_THAT(result, HasSubstr("call 1"));
      EXPECT_THAT(result, HasSubstr("call 2"));
      EXPECT_EQ(in, Ints(4, -1));
    }
  }));
}

TEST_P(AllToAllv, RejectsInvalidArguments) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Ints data(8);
    const Sizes one = {1, 1};
    EXPECT_THAT(
        outcome(setoAllToAllv(data.data(), nullptr, nullptr, data.data(), one.data(), nullptr, setoInt32, own.comm, nullptr)),
        HasSubstr("sendcounts"));
    EXPECT_THAT(
        outcome(setoAllToAllv(data.data(), one.data(), nullptr, data.data(), nullptr, nullptr, setoInt32, own.comm, nullptr)),
        HasSubstr("recvcounts"));
    EXPECT_THAT(outcome(setoAllToAllv(data.data(), one.data(), nullptr, data.data() + 1, one.data(), nullptr, setoInt32, own.comm,
                                      nullptr)),
                HasSubstr("overlap"));
  }));
}

}  // namespace
}  // namespace seto::testing

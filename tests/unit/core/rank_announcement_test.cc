#include "src/core/connect/rank_announcement.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace seto::testing {
namespace {

Introduction sample() {
  Introduction one;
  one.host = "host";
  one.site = "site";
  one.process = std::string("pro\0cess", 8);  // an address is bytes, zeros too
  one.context = 7;
  one.board = 4096;
  one.identity = std::numeric_limits<std::uint64_t>::max();
  one.cores = 3;
  one.machine = 99;
  one.machine_cores = 12;
  one.outcome = "\x05it failed";
  return one;
}

void expect_same(const Introduction& one, const Introduction& other) {
  EXPECT_EQ(one.host, other.host);
  EXPECT_EQ(one.site, other.site);
  EXPECT_EQ(one.process, other.process);
  EXPECT_EQ(one.context, other.context);
  EXPECT_EQ(one.board, other.board);
  EXPECT_EQ(one.identity, other.identity);
  EXPECT_EQ(one.cores, other.cores);
  EXPECT_EQ(one.machine, other.machine);
  EXPECT_EQ(one.machine_cores, other.machine_cores);
  EXPECT_EQ(one.outcome, other.outcome);
  EXPECT_EQ(one.offered, other.offered);
}

TEST(Introduction, ArrivesAsItWasSaid) {
  Introduction one = sample();
  for (const Attempts& offered :
       {Attempts{}, Attempts{0}, Attempts{1, 256, std::numeric_limits<AttemptId>::max()}, Attempts(kOffersLimit, 12)}) {
    one.offered = offered;
    Result<Introduction> other = Introduction::decoded(one.encoded());
    ASSERT_TRUE(other.ok()) << other.status().text();
    expect_same(one, other.value());
  }
}

TEST(Introduction, ThatIsCutShortIsRefused) {
  Introduction one = sample();
  one.offered = {1, 2, 3};
  const std::string whole = one.encoded();
  for (std::size_t length = 0; length < whole.size() - one.process.size(); ++length)
    EXPECT_FALSE(Introduction::decoded(whole.substr(0, length)).ok()) << length << " bytes";
}

TEST(Introduction, WithMoreOffersThanOneMayMakeIsRefused) {
  Introduction one = sample();
  one.offered.assign(kOffersLimit + 1, 12);
  const Result<Introduction> other = Introduction::decoded(one.encoded());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("8200 bytes"), std::string::npos) << other.status().text();
}

Introduction at(const std::string& host, int cores, std::uint64_t machine, int machine_cores) {
  Introduction one;
  one.host = host;
  one.cores = cores;
  one.machine = machine;
  one.machine_cores = machine_cores;
  return one;
}

TEST(Crowding, IsOfTheHostOrOfTheMachineBehindIt) {
  const std::vector<Introduction> apart = {at("a", 2, 1, 4), at("b", 2, 1, 4), at("c", 2, 2, 4), at("c", 2, 2, 4)};
  EXPECT_EQ(crowding(apart), 1);
  const std::vector<Introduction> no_memory_shared = {at("a", 2, 1, 2), at("b", 2, 1, 2), at("c", 2, 1, 2), at("d", 8, 2, 8)};
  EXPECT_EQ(crowding_at(no_memory_shared[0], no_memory_shared), 1.5);
  EXPECT_EQ(crowding_at(no_memory_shared[3], no_memory_shared), 1);
  EXPECT_EQ(crowding(no_memory_shared), 1.5);
  const std::vector<Introduction> bound = {at("a", 1, 1, 8), at("a", 1, 1, 8), at("a", 2, 1, 8)};
  EXPECT_EQ(crowding(bound), 3) << "the one that may use least";
  const std::vector<Introduction> unknown = {at("a", 1, 0, 1), at("b", 1, 0, 1)};
  EXPECT_EQ(crowding(unknown), 1);
}

}  // namespace
}  // namespace seto::testing

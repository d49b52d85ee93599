#include "src/core/introduction.h"

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

}  // namespace
}  // namespace seto::testing

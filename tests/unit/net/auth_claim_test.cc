#include "src/net/auth_claim.h"

#include <gtest/gtest.h>

#include <cstring>

namespace seto {
namespace {

HelloId hello(std::uint64_t number) {
  HelloId id{};
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

TEST(SeenHellos, EachCountsOnce) {
  SeenHellos seen;
  EXPECT_TRUE(seen.add(hello(1)));
  EXPECT_TRUE(seen.add(hello(2)));
  EXPECT_FALSE(seen.add(hello(1)));
  EXPECT_FALSE(seen.add(hello(2)));
}

TEST(SeenHellos, TheOldestAreForgotten) {
  SeenHellos seen;
  for (std::uint64_t number = 0; number < kSeenHellosLimit + 10; ++number) ASSERT_TRUE(seen.add(hello(number)));
  EXPECT_FALSE(seen.add(hello(10))) << "the oldest that is remembered";
  for (std::uint64_t number = 0; number < 10; ++number) EXPECT_TRUE(seen.add(hello(number))) << number;
  EXPECT_TRUE(seen.add(hello(10))) << "forgotten for those";
}

}  // namespace
}  // namespace seto

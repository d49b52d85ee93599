#include "src/net/unauthenticated_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace seto {
namespace {

using ::testing::HasSubstr;

TEST(UnauthenticatedLog, LogsOneLineForAnAddressInAMinuteWithACount) {
  UnauthenticatedLog log;
  const std::string one = "10.0.0.1";
  const std::string other = "10.0.0.2";
  std::uint64_t now = 1;
  EXPECT_THAT(log.note(one, now, "that was silent").value(), HasSubstr("closed a connection from 10.0.0.1 that was silent"));
  for (int count = 0; count < 10; ++count) EXPECT_FALSE(log.note(one, now += 1'000'000'000, "x").has_value());
  EXPECT_TRUE(log.note(other, now, "x").has_value());
  now += UnauthenticatedLog::kMinuteNs;
  EXPECT_THAT(log.note(one, now, "why").value(), HasSubstr("why (and 10 more from there since the last line like this)"));
}

TEST(UnauthenticatedLog, DropsTheOldestOfManyAddresses) {
  UnauthenticatedLog log;
  std::uint64_t now = 1;
  for (std::size_t host = 0; host <= UnauthenticatedLog::kAddressLimit; ++host)
    EXPECT_TRUE(log.note("host " + std::to_string(host), ++now, "x").has_value());
  EXPECT_FALSE(log.note("host 1", ++now, "x").has_value());
  EXPECT_TRUE(log.note("host 0", ++now, "x").has_value()) << "the oldest was dropped";
}

}  // namespace
}  // namespace seto

#include "src/topology/host_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <string>

#include "tests/support/child_process.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

TEST(HostIdentity, SameInEveryProcessOfAUser) {
  const std::string mine = host_identity("").value();
  EXPECT_THAT(mine, HasSubstr("boot="));
  ChildProcess child([&] { return host_identity("").value() == mine; });
  EXPECT_TRUE(child.wait());
}

TEST(HostIdentity, AnotherNetworkNamespaceIsAnotherHost) {
  ChildProcess probe([] { return unshare(CLONE_NEWNET) == 0; });
  if (!probe.wait()) GTEST_SKIP() << "skipped: needs root, to make a network namespace";
  const std::string mine = host_identity("").value();
  ChildProcess child([&] { return unshare(CLONE_NEWNET) == 0 && host_identity("").value() != mine; });
  EXPECT_TRUE(child.wait());
}

TEST(HostIdentity, OverrideTakesItsPlace) {
  EXPECT_EQ(host_identity("rack 7").value(), host_identity("rack 7").value());
  EXPECT_NE(host_identity("rack 7").value(), host_identity("rack 8").value());
  EXPECT_NE(host_identity("rack 7").value(), host_identity("").value());
  EXPECT_EQ(host_identity(std::string(kHostIdLimit + 1, 'x')).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace seto

#include "transports/rdma/verbs/fork_safety.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

// The call of the library, recorded by a function in its place.
namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

int calls = 0;
int answer = 0;

class ForkSafety : public ::testing::Test {
 protected:
  ForkSafety() {
    calls = answer = 0;
    functions_.ibv_fork_init = [] { return ++calls, answer; };
  }
  Status keep_on(const char* kernel) { return keep_queues_from_children(functions_, kernel); }

 private:
  LibibverbsFunctions functions_;
};

TEST_F(ForkSafety, OfQueuesIsAskedForWhereTheKernelHasNone) {
  for (const char* const kernel : {"3.10.0-1160.el7.x86_64", "4.18.0-553.el8_10.x86_64", "5.11.22", "unknown"}) {
    calls = 0;
    EXPECT_TRUE(keep_on(kernel).ok()) << kernel;
    EXPECT_EQ(calls, 1) << kernel;
  }
}

// There the library would only take memory of users from children that may read it.
TEST_F(ForkSafety, IsLeftToAKernelThatHasIt) {
  for (const char* const kernel : {"5.12.0", "5.14.0-427.el9.x86_64", "6.1.0-56-amd64"}) EXPECT_TRUE(keep_on(kernel).ok());
  EXPECT_EQ(calls, 0);
}

TEST_F(ForkSafety, ThatCannotBeHadSaysWhatToDo) {
  answer = EINVAL;
  const Status status = keep_on("4.18.0-553.el8_10.x86_64");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.text()), HasSubstr("RDMAV_FORK_SAFE=1"));
  EXPECT_THAT(std::string(status.text()), HasSubstr("4.18.0-553"));
}

}  // namespace
}  // namespace seto::rdma

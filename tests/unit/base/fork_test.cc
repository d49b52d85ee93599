#include "src/base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/child_process.h"

namespace seto {
namespace {

using testing::ChildProcess;

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

Fd some_fd() { return Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(Fork, ChildLosesPrivateDescriptorsOnly) {
  const PrivateFd secret(some_fd());
  const Fd ordinary = some_fd();
  ASSERT_TRUE(is_open(secret.get()));
  ChildProcess child([&] { return !is_open(secret.get()) && is_open(ordinary.get()); });
  EXPECT_TRUE(child.wait());
  EXPECT_TRUE(is_open(secret.get()));
}

TEST(Fork, ChildKeepsAReusedNumber) {
  PrivateFd secret(some_fd());
  ChildProcess child([&] {
    const int number = secret.get();
    const Fd reused = some_fd();
    if (reused.get() != number) return false;
    secret.close();
    return is_open(number);
  });
  EXPECT_TRUE(child.wait());
}

TEST(Fork, ClosedDescriptorIsForgotten) {
  PrivateFd secret(some_fd());
  const int number = secret.get();
  secret.close();
  EXPECT_FALSE(is_open(number));
  const Fd reused = some_fd();
  ASSERT_EQ(reused.get(), number);
  ChildProcess child([&] { return is_open(number); });
  EXPECT_TRUE(child.wait());
}

TEST(Fork, MoveTransfersOwnership) {
  PrivateFd first(some_fd());
  const int number = first.get();
  PrivateFd second(std::move(first));
  EXPECT_EQ(second.get(), number);
  PrivateFd third(some_fd());
  const int other = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(is_open(number));
  EXPECT_FALSE(is_open(other));
}

TEST(Fork, GenerationGrowsAndGrandchildrenAreRejected) {
  const std::uint32_t generation = fork_generation();
  ChildProcess child([&] {
    if (fork_generation() != generation + 1 || process_was_forked()) return false;
    refuse_forked_children();
    if (process_was_forked()) return false;
    ChildProcess grandchild([] {
      if (!process_was_forked()) return false;
      ChildProcess last([] { return process_was_forked(); });
      return last.wait();
    });
    return grandchild.wait();
  });
  EXPECT_TRUE(child.wait());
  EXPECT_EQ(fork_generation(), generation);
}

}  // namespace
}  // namespace seto

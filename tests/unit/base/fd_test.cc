#include "src/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace seto {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

Fd open_one() { return Fd(::eventfd(0, EFD_CLOEXEC)); }

TEST(Fd, EmptyHoldsNothing) {
  const Fd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_EQ(fd.get(), -1);
}

TEST(Fd, ClosesAtTheEndOfItsScope) {
  int number = -1;
  {
    const Fd fd = open_one();
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, MoveLeavesTheSourceEmpty) {
  Fd first = open_one();
  const int number = first.get();
  const Fd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT: the state after a move is what is tested
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, AssignmentClosesTheOldOne) {
  Fd first = open_one();
  const int old = first.get();
  Fd second = open_one();
  const int kept = second.get();
  first = std::move(second);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(first.get(), kept);
  EXPECT_TRUE(is_open(kept));
}

TEST(Fd, AssignmentToItselfKeepsIt) {
  Fd fd = open_one();
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(Fd, ReleaseReturnsTheDescriptor) {
  int number = -1;
  {
    Fd fd = open_one();
    number = fd.release();
    EXPECT_FALSE(fd.valid());
  }
  EXPECT_TRUE(is_open(number));
  const Fd owner(number);
}

TEST(Fd, CloseKeepsErrno) {
  Fd fd(1 << 20);  // not open: closing it fails with EBADF
  errno = ENOSPC;
  fd.close();
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_FALSE(fd.valid());
}

}  // namespace
}  // namespace seto

#include "src/device/cuda/direct_access.h"

#include <gtest/gtest.h>

namespace seto::cuda {
namespace {

TEST(DirectFlushes, AreNotNeededWhereWritesAreInOrder) {
  EXPECT_EQ(flush_for(100, 0), DirectFlush::none);
  EXPECT_EQ(flush_for(100, kDirectFlushByHost), DirectFlush::none);
  EXPECT_EQ(flush_for(200, 0), DirectFlush::none);
}

TEST(DirectFlushes, AreCallsOfTheHostElse) {
  EXPECT_EQ(flush_for(0, kDirectFlushByHost), DirectFlush::by_host);
  EXPECT_EQ(flush_for(0, kDirectFlushByHost | 2), DirectFlush::by_host);
}

// The second bit stands for a flush in a stream, for which a receive cannot wait on the host.
TEST(DirectFlushes, AreImpossibleWithoutThatCall) {
  EXPECT_EQ(flush_for(0, 0), DirectFlush::impossible);
  EXPECT_EQ(flush_for(0, 2), DirectFlush::impossible);
}

}  // namespace
}  // namespace seto::cuda

#include "bench/links/link_work.h"

#include <gtest/gtest.h>

namespace seto::bench {
namespace {

TEST(LinkWork, AWorkNamesItsBytesAndCalls) {
  const auto work = parse_link_work("all_reduce:100000000:2:4");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->name, "all_reduce");
  EXPECT_EQ(work->size, 100'000'000U);
  EXPECT_EQ(work->warm_ups, 2U);
  EXPECT_EQ(work->calls, 4U);
  EXPECT_EQ(work->idle_ms, 0U);
  EXPECT_EQ(work->at_once, 1U);
  EXPECT_EQ(work->checked, 0U);
  for (const char* const text : {"default:4:0:1", "fp16:4:0:1", "send_receive:4:0:1"}) EXPECT_TRUE(parse_link_work(text)) << text;
}

TEST(LinkWork, OptionsFollowInAnyOrder) {
  for (const char* const text : {"default:1000:0:1:idle=1500:at-once=4", "default:1000:0:1:at-once=4:idle=1500"}) {
    const auto work = parse_link_work(text);
    ASSERT_TRUE(work) << text;
    EXPECT_EQ(work->idle_ms, 1500U);
    EXPECT_EQ(work->at_once, 4U);
  }
  EXPECT_EQ(parse_link_work("all_reduce:4:0:1:checked=1")->checked, 1U);
}

TEST(LinkWork, AnythingElseIsRefused) {
  for (const char* const text : {"",
                                 "all_reduce",
                                 "all_reduce:",
                                 "all_reduce:4",
                                 "all_reduce:4:1",
                                 "all_reduce:4:1:0",
                                 "all_reduce:3:1:1",
                                 "all_reduce:4:1:1:",
                                 "all_reduce:4:1:1:5",
                                 "all_reduce:4:1:1x",
                                 "all_reduce:4:1:-1",
                                 "all_reduce:4:1:1:idle",
                                 "all_reduce:4:1:1:idle=",
                                 "all_reduce:4:1:1:idle=x",
                                 "all_reduce:4:1:1:idle=60001",
                                 "all_reduce:4:1:1:at-once=0",
                                 "all_reduce:4:1:1:at-once=65",
                                 "all_reduce:4:1:1:checked=2",
                                 "all_reduce:4:1:1:often=2",
                                 "reduce:4:1:1",
                                 "send_receive:4:1:1:at-once=2",
                                 "all_reduce:99999999999999999999:1:1"}) {
    EXPECT_FALSE(parse_link_work(text)) << text;
  }
}

}  // namespace
}  // namespace seto::bench

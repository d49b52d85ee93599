// Max-min fair shares, against values worked out by hand and against the definition.

#include "src/engine/simulation/shared_links.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

using Links = std::vector<std::uint32_t>;

TEST(SharedLinks, AFlowAloneHasItsSlowestLinkOrItsLimit) {
  SharedLinks links(std::array{10.0, 4.0});
  const std::uint32_t both = links.class_of(Links{0, 1}, 100);
  const std::uint32_t limited = links.class_of(Links{0}, 3);
  links.begin(both, 400, 7, 0);
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 100);
  EXPECT_EQ(links.end_flows(), std::vector<std::uint32_t>{7});
  EXPECT_EQ(links.next_end_ns(), SharedLinks::kNever);
  links.begin(limited, 30, 8, 100);
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 110);
}

TEST(SharedLinks, FlowsOfOneClassShareAndSpeedUpWhenOneEnds) {
  SharedLinks links(std::array{10.0});
  const std::uint32_t one = links.class_of(Links{0}, 100);
  EXPECT_EQ(links.class_of(Links{0}, 100), one) << "one class for equal flows";
  links.begin(one, 100, 1, 0);
  links.begin(one, 50, 2, 0);
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 10);  // 5 bytes a nanosecond each
  EXPECT_EQ(links.end_flows(), std::vector<std::uint32_t>{2});
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 15);  // the other 50 bytes at the whole rate
  links.begin(one, 10, 3, 12);                // 20 bytes later
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 14);
  EXPECT_EQ(links.end_flows(), std::vector<std::uint32_t>{3});
  EXPECT_DOUBLE_EQ(links.next_end_ns(), 16);
  EXPECT_EQ(links.end_flows(), std::vector<std::uint32_t>{1});
  EXPECT_NEAR(links.bytes_over(0), 160, 1e-9);
}

TEST(SharedLinks, WhatAFlowCannotUseGoesToTheOthers) {
  // An uplink of 10 with three flows: to a downlink of 2, with a limit of 3, and without either.
  SharedLinks links(std::array{10.0, 2.0});
  const std::uint32_t narrow = links.class_of(Links{0, 1}, 100);
  const std::uint32_t slow = links.class_of(Links{0}, 3);
  const std::uint32_t free = links.class_of(Links{0}, 100);
  links.begin(narrow, 1000, 1, 0);
  links.begin(slow, 1000, 2, 0);
  links.begin(free, 1000, 3, 0);
  EXPECT_DOUBLE_EQ(links.rate_of(narrow), 2);
  EXPECT_DOUBLE_EQ(links.rate_of(slow), 3);
  EXPECT_DOUBLE_EQ(links.rate_of(free), 5);
}

TEST(SharedLinks, FlowsThatEndTogetherComeInTheOrderOfTheirBegin) {
  SharedLinks links(std::array{10.0, 10.0});
  const std::uint32_t left = links.class_of(Links{0}, 100);
  const std::uint32_t right = links.class_of(Links{1}, 100);
  links.begin(right, 100, 5, 0);
  links.begin(left, 100, 4, 0);
  EXPECT_EQ(links.end_flows(), (std::vector<std::uint32_t>{5, 4}));
}

// A rate is max-min fair if each flow is at its limit, or crosses a full link on which no flow is faster.
TEST(SharedLinks, RandomSharesAreMaxMinFair) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 60; ++round) {
    std::vector<double> capacities(1 + random() % 5);
    for (double& capacity : capacities) capacity = 1 + static_cast<double>(random() % 20);
    SharedLinks links(capacities);
    struct Flows {
      std::uint32_t index;
      Links over;
      double limit;
      int count;
    };
    std::vector<Flows> all;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      Flows one{0, {}, random() % 3 == 0 ? 0.5 + static_cast<double>(random() % 8) : 1e3, static_cast<int>(1 + random() % 4)};
      for (std::uint32_t link = 0; link < capacities.size(); ++link)
        if (random() % 2 == 0) one.over.push_back(link);
      one.index = links.class_of(one.over, one.limit);
      for (int flow = 0; flow < one.count; ++flow) links.begin(one.index, 1e6, 0, 0);
      all.push_back(one);
    }
    std::vector<double> used(capacities.size(), 0);
    std::vector<double> fastest(capacities.size(), 0);
    for (const Flows& one : all)
      for (const std::uint32_t link : one.over) {
        used[link] += one.count * links.rate_of(one.index);
        fastest[link] = std::max(fastest[link], links.rate_of(one.index));
      }
    for (std::size_t link = 0; link < used.size(); ++link) EXPECT_LE(used[link], capacities[link] * (1 + 1e-9));
    for (const Flows& one : all) {
      const double rate = links.rate_of(one.index);
      bool stopped = rate >= one.limit * (1 - 1e-9);
      for (const std::uint32_t link : one.over)
        stopped = stopped || (used[link] >= capacities[link] * (1 - 1e-9) && rate >= fastest[link] * (1 - 1e-9));
      EXPECT_TRUE(stopped) << "round " << round << ": a flow could be faster";
    }
  }
}

TEST(SharedLinks, LongTimesDoNotStopTheClock) {
  SharedLinks links(std::array{100.0});
  const std::uint32_t one = links.class_of(Links{0}, 100);
  double now_ns = 1e12;  // a quarter of an hour
  for (std::uint32_t flow = 0; flow < 200; ++flow) {
    links.begin(one, 1.0 / 3, flow, now_ns);
    now_ns = links.next_end_ns();
    ASSERT_EQ(links.end_flows(), std::vector<std::uint32_t>{flow});
  }
}

}  // namespace
}  // namespace seto

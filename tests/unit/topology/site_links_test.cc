#include "src/topology/site_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

LinkFacts measured(double round_trip_s, std::optional<double> bytes_per_second = std::nullopt) {
  return {.medium = LinkMedium::wide_area,
          .bytes_per_second = bytes_per_second,
          .round_trip_s = round_trip_s,
          .source = FactSource::measured};
}

TEST(SiteLinks, HaveADirection) {
  SiteLinks links(2);
  EXPECT_THAT(links.add({0, 0, 1, measured(60e-3, 125e6)}), IsEmpty());
  EXPECT_THAT(links.add({1, 1, 0, measured(60e-3, 12e6)}), IsEmpty());
  EXPECT_EQ(links.between(0, 1).bytes_per_second, 125e6);
  EXPECT_EQ(links.between(1, 0).bytes_per_second, 12e6);
  EXPECT_EQ(links.text(),
            "0>1 round trip 60 ms (measured), 125 MB/s\n"
            "1>0 round trip 60 ms (measured), 12 MB/s\n");
}

TEST(SiteLinks, ABusyMomentDoesNotMakeALinkLookWorse) {
  SiteLinks links(2);
  for (const double round_trip : {60e-3, 30e-3, 95e-3}) links.add({0, 0, 1, measured(round_trip, 1 / round_trip * 1e6)});
  EXPECT_EQ(links.between(0, 1), measured(30e-3, 1 / 30e-3 * 1e6));
}

TEST(SiteLinks, TheWorstLinkIsUnknownWhereOneIs) {
  SiteLinks links(3);
  EXPECT_FALSE(SiteLinks(1).worst().known());
  for (std::uint32_t from = 0; from < 3; ++from)
    for (std::uint32_t to = 0; to < 3; ++to)
      if (from != to) links.add({0, from, to, measured(10e-3 * (1 + from + to), to == 0 ? 1e6 : 2e6)});
  EXPECT_EQ(links.worst(), measured(40e-3, 1e6));
  EXPECT_EQ(links.longest().from, 1U);
  EXPECT_EQ(links.longest().to, 2U);
  SiteLinks part(2);
  part.add({0, 0, 1, measured(10e-3, 1e6)});
  EXPECT_FALSE(part.worst().round_trip_s) << "from site 1 to site 0 nothing is known";
  EXPECT_FALSE(part.worst().bytes_per_second);
}

TEST(SiteLinks, NonsenseIsBoundedAndTheRankThatSaidItIsNamed) {
  SiteLinks links(2);
  EXPECT_THAT(links.add({7, 0, 1, measured(kNan, 1e30)}),
              ::testing::AllOf(HasSubstr("rank 7 (link from site 0 to site 1) states bytes per second = 1e+30; 1e+13 is used"),
                               HasSubstr("states round trip in seconds = nan; it counts as unknown")));
  EXPECT_EQ(links.between(0, 1).bytes_per_second, 1e13);
  EXPECT_FALSE(links.between(0, 1).round_trip_s);
  EXPECT_THAT(links.add({7, 0, 1, measured(-1, -5)}), HasSubstr("rank 7"));
  EXPECT_THAT(links.add({3, 0, 9, measured(1e-3)}), HasSubstr("rank 3 states a link of site 9, but there are 2 sites"));
}

TEST(SiteLinks, StayWithinBoundsWhateverIsStated) {
  std::mt19937_64 random(testing::chosen_seed());
  const std::array<double, 9> values{
      kNan, 0, -1, 1e30, -1e30, 1e-30, INFINITY, -INFINITY, std::numeric_limits<double>::denorm_min()};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int run = 0; run < 1000; ++run) {
    SiteLinks links(2);
    const LinkFacts stated{.bytes_per_second = any(),
                           .round_trip_s = any(),
                           .loss = any(),
                           .socket_bytes_per_second = any(),
                           .source = FactSource::traffic};
    links.add({1, 0, 1, stated});
    const LinkFacts& kept = links.between(0, 1);
    const auto is_within = [](std::optional<double> value, double least, double most) {
      return !value || (*value >= least && *value <= most);
    };
    EXPECT_TRUE(is_within(kept.bytes_per_second, 1e3, 1e13));
    EXPECT_TRUE(is_within(kept.round_trip_s, 1e-6, 10));
    EXPECT_TRUE(is_within(kept.loss, 0, 1));
    EXPECT_TRUE(is_within(kept.socket_bytes_per_second, 1e3, 1e13));
  }
}

TEST(SiteLinks, TheDigestDependsOnEveryNumber) {
  SiteLinks links(2);
  links.add({0, 0, 1, measured(60e-3, 125e6)});
  SiteLinks same(2);
  same.add({5, 0, 1, measured(60e-3, 125e6)});
  EXPECT_EQ(links, same);
  EXPECT_EQ(links.digest(), same.digest());
  const auto with = [](auto change) {
    LinkFacts link = measured(60e-3, 125e6);
    change(link);
    return link;
  };
  for (const LinkFacts& other :
       {measured(61e-3, 125e6), measured(60e-3, 126e6), measured(60e-3), with([](LinkFacts& link) { link.loss = 0.1; }),
        with([](LinkFacts& link) { link.socket_bytes_per_second = 4e6; }),
        with([](LinkFacts& link) { link.source = FactSource::traffic; })}) {
    SiteLinks different(2);
    different.add({0, 0, 1, other});
    EXPECT_NE(links.digest(), different.digest()) << text_of(other);
  }
  EXPECT_NE(SiteLinks(1).digest(), SiteLinks(2).digest());
}

}  // namespace
}  // namespace seto

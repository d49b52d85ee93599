#include "src/core/device_memory/device_costs.h"

#include <gtest/gtest.h>

#include "src/engine/device/device_channels.h"

namespace seto {
namespace {

CostModel costs_of(double hop_seconds, double bytes_per_second) {
  CostModel costs;
  costs.node.latency_seconds = hop_seconds;
  costs.node.bytes_per_second = bytes_per_second;
  return costs;
}

TEST(DeviceMarks, PayWhileTheSecondHalfOfTheWordsCostsLessThanHalfAHop) {
  const Algorithm& sum = *find_algorithm("one_shot", Collective::all_reduce);
  const CostModel links = costs_of(2e-6, 24e9);  // half a hop is 24,000 bytes
  EXPECT_TRUE(pays_marks(sum, 8, 1, links));
  EXPECT_TRUE(pays_marks(sum, 8, 3'400, links));
  EXPECT_FALSE(pays_marks(sum, 8, 3'430, links));
  EXPECT_FALSE(pays_marks(sum, 8, 400, costs_of(0.2e-6, 24e9)));
  EXPECT_TRUE(pays_marks(sum, 8, DeviceChannels::most_marked_bytes(8), costs_of(2e-6, 400e9)));
  EXPECT_FALSE(pays_marks(sum, 8, DeviceChannels::most_marked_bytes(8) + 1, costs_of(2e-6, 400e9)));
  EXPECT_FALSE(pays_marks(sum, 1, 8, links)) << "there is no message";
  EXPECT_FALSE(pays_marks(sum, 8, 0, links)) << "there is no word";
}

TEST(DeviceMarks, AreForCallsInWhichEveryRankSendsToEveryOther) {
  const CostModel links = costs_of(2e-6, 24e9);
  for (const Algorithm& algorithm : algorithms()) {
    const bool is_exchange = (algorithm.name == "one_shot" && algorithm.collective == Collective::all_reduce) ||
                             (algorithm.name == "direct" && (algorithm.collective == Collective::all_gather ||
                                                             algorithm.collective == Collective::reduce_scatter ||
                                                             algorithm.collective == Collective::all_to_all));
    EXPECT_EQ(pays_marks(algorithm, 4, 64, links), is_exchange) << algorithm.name << " " << name_of(algorithm.collective);
  }
}

}  // namespace
}  // namespace seto

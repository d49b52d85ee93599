// Calls over links whose paths break.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "tests/conformance/engine_world.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::tcp {
namespace {

// A step writes the sum over what it has sent (decision 24): no digest would see that the sum was sent again.
TEST(TcpPathsOfAnEngine, SumsInPlaceStayRightPlainAndEncoded) {
  std::uint64_t seed = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::all_reduce) continue;
    for (const std::optional<Codec> codec : {std::optional<Codec>(), std::optional(Codec::fp16)}) {
      support::Job job{&algorithm, 2, DataType::float32, ReduceOp::sum, 100'000};
      job.slice_elements = 8'000;
      job.in_place = InPlace::yes;
      job.codec = codec;
      const Shape shape = support::shape_of(job);
      if (!algorithm.refuses(shape, support::tiers_for(job)).empty()) continue;
      if (codec && algorithm.encodings(shape, support::tiers_for(job)) == 0) continue;
      SCOPED_TRACE(job.text());
      const auto& transport = ++seed % 3 == 0 ? support::cut_rails_transport() : support::cut_transport(seed % 3 == 1);
      support::World world(transport, job,
                           [&](support::PeerGroupMember& member) { return support::Faults{.seed = seed * 8 + member.index()}; });
      ASSERT_TRUE(world.drive(6, seed, support::kPatience));
      for (const auto& worker : world.workers_) {
        EXPECT_EQ(worker->wrong(), 0U);
        EXPECT_FALSE(worker->touched_late());
      }
    }
  }
}

}  // namespace
}  // namespace seto::tcp

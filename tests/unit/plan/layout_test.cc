#include "src/plan/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "src/plan/chunk_map.h"

namespace seto {
namespace {

Shape shape_of(Collective collective, int ranks, std::uint32_t pieces) { return {collective, ranks, 0, pieces, Finish::none}; }

TEST(Layout, CutsAPartIntoPiecesThatDifferByAGrainAtMost) {
  const Layout layout = Layout::uniform(shape_of(Collective::all_reduce, 4, 4), 0, 103, 16);  // 7 grains, the last of 7 elements
  const std::uint64_t lengths[] = {32, 32, 32, 7};
  std::uint64_t begin = 0;
  for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
    EXPECT_EQ(layout.length(chunk), lengths[chunk]);
    EXPECT_EQ(layout.input_offset(chunk), begin);
    EXPECT_EQ(layout.output_offset(chunk), begin);
    begin += lengths[chunk];
  }
  EXPECT_EQ(layout.longest(), 32U);
}

TEST(Layout, LeavesTheLastPiecesEmptyWhenGrainsRunOut) {
  const Layout layout = Layout::uniform(shape_of(Collective::broadcast, 3, 5), 1, 17, 16);
  const std::uint64_t lengths[] = {16, 1, 0, 0, 0};
  for (std::uint32_t chunk = 0; chunk < 5; ++chunk) EXPECT_EQ(layout.length(chunk), lengths[chunk]) << chunk;
  EXPECT_EQ(layout.output_offset(4), 17U);
}

TEST(Layout, PlacesThePartsOfTheCollectivesOneAfterAnother) {
  const Layout gather = Layout::uniform(shape_of(Collective::all_gather, 3, 2), 2, 10, 1);
  EXPECT_EQ(gather.input_offset(1), 5U);    // the own part alone
  EXPECT_EQ(gather.output_offset(5), 25U);  // rank 2's second piece
  EXPECT_EQ(gather.length(5), 5U);

  const Layout exchange = Layout::uniform(shape_of(Collective::all_to_all, 3, 2), 1, 10, 1);
  EXPECT_EQ(exchange.input_offset(2 * 2 + 1), 25U);
  EXPECT_EQ(exchange.output_offset(1), 5U);
}

TEST(Layout, FollowsATableOfUnevenParts) {
  const std::uint64_t counts[] = {3, 0, 8};
  const std::uint64_t displacements[] = {20, 0, 2};
  const Shape gather = shape_of(Collective::all_gather, 3, 2);
  const Layout packed = Layout::table(gather, 2, counts, {}, 1);
  EXPECT_EQ(packed.output_offset(1), 2U);
  EXPECT_EQ(packed.output_offset(4), 3U);
  EXPECT_EQ(packed.input_offset(1), 4U);
  EXPECT_EQ(packed.longest(), 4U);
  EXPECT_EQ(packed.length(2), 0U);

  const Layout placed = Layout::table(gather, 0, counts, displacements, 1);
  EXPECT_EQ(placed.output_offset(0), 20U);
  EXPECT_EQ(placed.output_offset(5), 6U);
  EXPECT_EQ(placed.input_offset(1), 2U);

  const Layout scattered = Layout::table(shape_of(Collective::reduce_scatter, 3, 2), 0, counts, displacements, 1);
  EXPECT_EQ(scattered.input_offset(5), 6U);
  EXPECT_EQ(scattered.output_offset(1), 2U);
}

TEST(Layout, CutsSlicesAlikeInEveryChunk) {
  const Layout layout = Layout::uniform(shape_of(Collective::all_reduce, 2, 2), 0, 21, 1);  // 11 and 10
  EXPECT_EQ(layout.slices(4), 3U);
  EXPECT_EQ(layout.slice(0, 2, 4), (Extent{8, 3}));
  EXPECT_EQ(layout.slice(1, 2, 4), (Extent{8, 2}));
  EXPECT_EQ(layout.slice(1, 5, 4), (Extent{10, 0}));
  EXPECT_EQ(Layout::uniform(shape_of(Collective::barrier, 2, 2), 0, 0, 1).slices(4), 1U);
}

TEST(Layout, HoldsAtTheLargestCounts) {
  const std::uint64_t count = (std::uint64_t{1} << 62) - 1;
  const Shape shape = shape_of(Collective::all_reduce, 2, 7);
  const Layout layout = Layout::uniform(shape, 0, count, 16);
  EXPECT_EQ(layout.output_offset(6) + layout.length(6), count);
}

// For every shape: chunks tile each buffer exactly, none is longer than `longest`, every cut is at a grain, and all ranks cut
// alike.
TEST(Layout, TilesBuffersExactly) {
  constexpr unsigned kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 500; ++round) {
    const auto collective = static_cast<Collective>(random() % kCollectiveCount);
    Shape shape = shape_of(collective, 1 + static_cast<int>(random() % 6), 1 + static_cast<std::uint32_t>(random() % 5));
    shape.root = static_cast<Rank>(random() % static_cast<unsigned>(shape.ranks));
    const std::uint64_t count = random() % 200;
    const std::uint32_t grain = 1U << (random() % 6);
    std::vector<std::uint64_t> lengths(logical_chunks(shape));
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      const Layout layout = Layout::uniform(shape, rank, count, grain);
      std::uint64_t next = 0;
      for (std::uint32_t index = 0; index < output_chunks(shape, rank); ++index) {
        const std::uint64_t length = layout.length(chunk_of_output(shape, rank, index));
        ASSERT_EQ(layout.output_offset(index), next);
        ASSERT_LE(length, layout.longest());
        if (length > 0) {
          ASSERT_EQ((next % count) % grain, 0U);
        }
        next += length;
      }
      ASSERT_EQ(next, count * (output_chunks(shape, rank) / shape.pieces));
      for (std::uint32_t chunk = 0; chunk < lengths.size(); ++chunk) {
        if (rank == 0) lengths[chunk] = layout.length(chunk);
        ASSERT_EQ(layout.length(chunk), lengths[chunk]);
      }
    }
  }
}

}  // namespace
}  // namespace seto

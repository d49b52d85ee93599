// The places of a collective's data in the buffers of its ranks, against the definition of each collective.

#include "src/plan/chunk_map.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace seto {
namespace {

class ChunkMap : public ::testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  // Ranks and pieces of the parameter; the root is the last rank, which no default is.
  [[nodiscard]] static Shape shape() {
    const auto [collective, ranks, pieces] = GetParam();
    Shape shape;
    shape.collective = static_cast<Collective>(collective);
    shape.ranks = ranks;
    shape.root = ranks - 1;
    shape.pieces = static_cast<std::uint32_t>(pieces);
    return shape;
  }
};

INSTANTIATE_TEST_SUITE_P(Shapes, ChunkMap,
                         ::testing::Combine(::testing::Range(0, kCollectiveCount), ::testing::Values(1, 2, 3, 8),
                                            ::testing::Values(1, 2, 5)),
                         [](const auto& one) {
                           return std::string(name_of(static_cast<Collective>(std::get<0>(one.param)))) + "_of_" +
                                  std::to_string(std::get<1>(one.param)) + "_in_" + std::to_string(std::get<2>(one.param));
                         });

TEST_P(ChunkMap, IndicesOfABufferAreDenseAndEachHasOneChunk) {
  const Shape shape = this->shape();
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    std::set<std::uint32_t> inputs;
    std::set<std::uint32_t> outputs;
    for (std::uint32_t chunk = 0; chunk < logical_chunks(shape); ++chunk) {
      if (const auto index = input_index(shape, rank, chunk)) {
        EXPECT_LT(*index, input_chunks(shape, rank));
        EXPECT_TRUE(inputs.insert(*index).second) << "two chunks at one place";
        EXPECT_EQ(chunk_of_input(shape, rank, *index), chunk);
      }
      if (const auto index = output_index(shape, rank, chunk)) {
        EXPECT_LT(*index, output_chunks(shape, rank));
        EXPECT_TRUE(outputs.insert(*index).second) << "two chunks at one place";
        EXPECT_EQ(chunk_of_output(shape, rank, *index), chunk);
      }
    }
    EXPECT_EQ(inputs.size(), input_chunks(shape, rank));
    EXPECT_EQ(outputs.size(), output_chunks(shape, rank));
  }
}

TEST_P(ChunkMap, EveryChunkComesFromItsOwnersAndGoesToSomeRank) {
  const Shape shape = this->shape();
  for (std::uint32_t chunk = 0; chunk < logical_chunks(shape); ++chunk) {
    std::vector<Rank> givers;
    int takers = 0;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      if (input_index(shape, rank, chunk)) givers.push_back(rank);
      takers += output_index(shape, rank, chunk) ? 1 : 0;
    }
    const Rank owner = owner_of(shape, chunk);
    if (owner >= 0) {
      EXPECT_EQ(givers, std::vector<Rank>{owner});
    } else {
      EXPECT_EQ(givers.size(), static_cast<std::size_t>(shape.ranks)) << "all contribute to a sum";
    }
    EXPECT_GE(takers, 1);
  }
}

TEST_P(ChunkMap, OnlySumsHaveNoOwner) {
  const Shape shape = this->shape();
  for (std::uint32_t chunk = 0; chunk < logical_chunks(shape); ++chunk)
    EXPECT_EQ(owner_of(shape, chunk) < 0, reduces(shape.collective));
}

// Chunks that follow each other in a part follow each other in every buffer, so that a range of chunks is a range of memory.
TEST_P(ChunkMap, PiecesOfAPartStayTogether) {
  const Shape shape = this->shape();
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    for (std::uint32_t chunk = 0; chunk + 1 < logical_chunks(shape); ++chunk) {
      if ((chunk + 1) % shape.pieces == 0) continue;
      const auto here = input_index(shape, rank, chunk);
      const auto next = input_index(shape, rank, chunk + 1);
      EXPECT_EQ(here.has_value(), next.has_value());
      if (here && next) {
        EXPECT_EQ(*here + 1, *next);
      }
      const auto out = output_index(shape, rank, chunk);
      if (out) {
        EXPECT_EQ(*out + 1, output_index(shape, rank, chunk + 1).value());
      }
    }
  }
}

TEST(ChunkMapOfAllToAll, TransposesPartsBetweenRanks) {
  Shape shape;
  shape.collective = Collective::all_to_all;
  shape.ranks = 3;
  shape.pieces = 2;
  for (Rank from = 0; from < 3; ++from) {
    for (Rank to = 0; to < 3; ++to) {
      for (std::uint32_t piece = 0; piece < 2; ++piece) {
        const auto chunk = (static_cast<std::uint32_t>(from) * 3 + static_cast<std::uint32_t>(to)) * 2 + piece;
        EXPECT_EQ(input_index(shape, from, chunk), static_cast<std::uint32_t>(to) * 2 + piece);
        EXPECT_EQ(output_index(shape, to, chunk), static_cast<std::uint32_t>(from) * 2 + piece);
        EXPECT_EQ(owner_of(shape, chunk), from);
      }
    }
  }
}

}  // namespace
}  // namespace seto

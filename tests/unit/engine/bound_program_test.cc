// Programs are bound without streams: what both ends of a stream derive alone is the same, and addresses follow the layout.

#include "src/engine/bound_program.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "algorithms/algorithm.h"
#include "src/engine/coding.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

struct Subject {
  const Algorithm* algorithm = nullptr;
  Shape shape;
  std::uint64_t count = 100;
  InPlace in_place = InPlace::no;
  DataType type = DataType::float32;
  LaunchTuning tuning{1 << 20, 2};
};

Subject subject(std::string_view name, Collective collective, int ranks) {
  Subject subject;
  subject.algorithm = find_algorithm(name, collective);
  EXPECT_NE(subject.algorithm, nullptr) << name;
  subject.shape = {collective, ranks, 0, 1, Finish::none};
  subject.shape.pieces = subject.algorithm->pieces(subject.shape, Tiers::flat(ranks));
  return subject;
}

void encode(Subject& subject, Codec codec) {
  subject.shape.codec = plan_number(codec);
  subject.shape.coded_tiers = 1;
}

Result<BoundProgram> bind(const Subject& subject, const Program& program, Rank rank) {
  const Layout layout = Layout::uniform(subject.shape, rank, subject.count, 1);
  return bind_program({&program, subject.shape, subject.in_place, &layout, subject.type, ReduceOp::sum, 77, subject.tuning});
}

Program lowered(const Subject& subject, Rank rank) {
  const Tiers tiers = Tiers::flat(subject.shape.ranks);
  const Program plain = build_program(*subject.algorithm, subject.shape, tiers, rank, subject.in_place);
  return lower(plain, subject.shape, subject.in_place, rules_for(subject.type));
}

BoundProgram bound(const Subject& subject, Rank rank) {
  Result<BoundProgram> result = bind(subject, lowered(subject, rank), rank);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(result).value();
}

TEST(BoundProgram, GivesBothEndsOfEveryStreamTheSameGeometry) {
  std::size_t joined = 0;
  for (const Algorithm& algorithm : algorithms())
    for (int ranks = 2; ranks <= 5; ++ranks)
      for (const bool coded : {false, true}) {
        Subject each = subject(algorithm.name, algorithm.collective, ranks);
        each.tuning = {7, 3};
        if (coded) encode(each, Codec::int8);
        const Tiers tiers = Tiers::flat(ranks);
        if (!algorithm.refuses(each.shape, tiers).empty()) continue;
        if (coded && algorithm.encodings(each.shape, tiers) == 0) continue;
        SCOPED_TRACE(std::string(algorithm.name) + " " + std::to_string(ranks) + (coded ? " coded" : ""));
        using Key = std::tuple<std::uint32_t, std::uint32_t, int, int>;  // sender, receiver, group, port
        std::map<Key, BoundStream> sends;
        std::map<Key, BoundStream> receives;
        for (Rank rank = 0; rank < ranks; ++rank)
          for (const BoundStream& stream : bound(each, rank).streams)
            for (const std::uint32_t receiver : stream.receivers) {
              const bool own = stream.address.sender == static_cast<std::uint32_t>(rank);
              if (!own && receiver != static_cast<std::uint32_t>(rank)) continue;
              auto& ends = own ? sends : receives;
              const Key key{stream.address.sender, receiver, stream.address.group, stream.address.port};
              EXPECT_TRUE(ends.emplace(key, stream).second) << "two streams have one address";
            }
        ASSERT_EQ(sends.size(), receives.size());
        joined += sends.size();
        for (const auto& [key, send] : sends) {
          const auto other = receives.find(key);
          ASSERT_NE(other, receives.end());
          const StreamGeometry& there = other->second.geometry;
          EXPECT_EQ(send.geometry.slot_size, there.slot_size);
          EXPECT_EQ(send.geometry.slices, there.slices);
          EXPECT_EQ(std::pair(there.depth, there.digest), std::pair(3U, 77U));
          EXPECT_EQ(send.coded, other->second.coded);
        }
      }
  EXPECT_GT(joined, 200U);
}

TEST(BoundProgram, CountsAddressesInBytesFromTheBuffersBegin) {
  Subject gather = subject("direct", Collective::all_gather, 3);
  const std::uint64_t counts[] = {5, 0, 7};
  const std::uint64_t displacements[] = {20, 30, 2};
  const Program program = lowered(gather, 2);
  const Layout layout = Layout::table(gather.shape, 2, counts, displacements, 1);
  const Result<BoundProgram> result =
      bind_program({&program, gather.shape, InPlace::no, &layout, DataType::float64, ReduceOp::sum, 0, {4, 2}});
  ASSERT_TRUE(result.ok()) << result.status().text();
  const BoundProgram& bound = result.value();
  EXPECT_EQ(bound.slices, 2U);
  std::uint64_t written = 0;
  for (const BoundStep& step : bound.steps)
    for (std::uint32_t i = 0; i < step.target_count; ++i) {
      if (bound.targets[step.first_target + i].space != Space::output) continue;
      const std::uint64_t length = bound.lengths[step.first_piece];
      const std::uint64_t expected = length == 5 ? 20 : length == 7 ? 2 : 30;
      EXPECT_EQ(bound.offsets[step.first_offset + step.source_count + i], expected * 8);
      written += length;
      // Slices of 4: the second one holds the rest, or nothing.
      EXPECT_EQ(bound.message_size(step, 0, false), std::min<std::uint64_t>(length, 4) * 8);
      EXPECT_EQ(bound.message_size(step, 1, false), length > 4 ? (length - 4) * 8 : 0);
    }
  EXPECT_EQ(written, 12U);
}

TEST(BoundProgram, SaysWhatMayBeLentAndPlaced) {
  Subject broadcast = subject("direct", Collective::broadcast, 2);
  const BoundProgram root = bound(broadcast, 0);
  const BoundProgram other = bound(broadcast, 1);
  EXPECT_FALSE(root.receives());
  EXPECT_TRUE(other.receives());
  EXPECT_TRUE(root.placements.empty());
  std::uint64_t lent = 0;
  for (const BoundTarget& target : root.targets)
    if (target.space == Space::channel) {
      EXPECT_EQ(target.lent_space, Space::input);
      EXPECT_EQ(target.lent_offset, 0U);
      ++lent;
    }
  EXPECT_EQ(lent, 1U);
  ASSERT_EQ(other.placements.size(), 1U);
  EXPECT_EQ(other.placements[0].offset, 0U);
  EXPECT_EQ(other.placements[0].size, 400U);
}

// In place, the input is overwritten before the operation ends, so the first message of a ring has no place to be lent from.
TEST(BoundProgram, LendsNothingThatIsOverwritten) {
  Subject ring = subject("ring", Collective::all_reduce, 2);
  const auto lent_from_input = [&](InPlace in_place) {
    ring.in_place = in_place;
    const BoundProgram program = bound(ring, 0);
    std::uint64_t count = 0;
    for (const BoundTarget& target : program.targets) count += target.lent_space == Space::input ? 1 : 0;
    return count;
  };
  EXPECT_EQ(lent_from_input(InPlace::no), 1U);
  EXPECT_EQ(lent_from_input(InPlace::yes), 0U);
}

TEST(BoundProgram, CutsSlicesWhereBlocksOfTheCodecEnd) {
  Subject ring = subject("two_shot", Collective::all_reduce, 2);
  encode(ring, Codec::int8);
  ring.count = 5000;
  ring.tuning.slice_elements = 1;
  const BoundProgram program = bound(ring, 0);
  EXPECT_EQ(program.slice_elements, facts_of(Codec::int8).block);
  EXPECT_TRUE(program.placements.empty()) << "encoded bytes are not what belongs in the output";
  std::uint64_t coded = 0;
  for (const BoundStream& stream : program.streams)
    if (stream.coded) {
      EXPECT_EQ(stream.geometry.slot_size, encoded_size(Codec::int8, program.slice_elements));
      ++coded;
    }
  EXPECT_GT(coded, 0U);
  for (const BoundTarget& target : program.targets) {
    if (!target.coded) continue;
    EXPECT_EQ(target.lent_space, Space::channel);
  }
}

// Each rank encodes every chunk once for the first time, and the residuals of a chunk lie where its input lies.
TEST(BoundProgram, KeepsAResidualForEachElementOfTheInput) {
  Subject two_shot = subject("two_shot", Collective::all_reduce, 3);
  encode(two_shot, Codec::int8);
  two_shot.count = 3000;
  for (Rank rank = 0; rank < 3; ++rank) {
    const BoundProgram program = bound(two_shot, rank);
    std::map<std::uint64_t, std::uint64_t> kept;  // offset -> bytes
    for (const BoundStep& step : program.steps)
      for (std::uint32_t piece = step.first_piece; piece < step.first_piece + step.pieces; ++piece)
        if (program.residuals[piece] != BoundProgram::kNoResidual) {
          EXPECT_TRUE(kept.emplace(program.residuals[piece], program.lengths[piece] * 4).second);
        }
    std::uint64_t next = 0;
    for (const auto& [offset, size] : kept) {
      EXPECT_EQ(offset, next);
      next = offset + size;
    }
    EXPECT_EQ(next, 3000U * 4);
  }
}

TEST(BoundProgram, RefusesACodecThatDoesNotTakeTheType) {
  Subject ring = subject("ring", Collective::all_reduce, 2);
  encode(ring, Codec::fp16);
  ring.type = DataType::int32;
  const Result<BoundProgram> result = bind(ring, lowered(ring, 0), 0);
  EXPECT_EQ(result.status().code(), Code::internal);
  EXPECT_NE(result.status().text().find("does not take"), std::string_view::npos) << result.status().text();
}

TEST(BoundProgram, KnowsWhetherItsProgramIsLowered) {
  const Subject ring = subject("ring", Collective::all_reduce, 3);
  EXPECT_TRUE(bound(ring, 0).skewed.has_value());
  const Program plain = build_program(*ring.algorithm, ring.shape, Tiers::flat(3), 0, InPlace::no);
  const Result<BoundProgram> result = bind(ring, plain, 0);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_FALSE(result.value().skewed.has_value());
  EXPECT_EQ(result.value().steps.size(), plain.steps.size());
  EXPECT_EQ(result.value().lanes, plain.lanes);
}

}  // namespace
}  // namespace seto

// The checks that a rank makes on its own call, and the sizes and the text that follow from a call.

#include "src/core/call/collective_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "src/core/call/call_summary.h"
#include "src/core/call/ids.h"
#include "src/plan/chunk_map.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr std::uint64_t kCount = 6;

// Room for the input and the output of any call of these tests.
struct Memory {
  alignas(8) std::array<std::byte, 4096> bytes{};

  [[nodiscard]] std::byte* at(std::size_t offset) { return &bytes[offset]; }
};

Call call_of(Collective collective, Memory& memory) {
  Call call;
  call.collective = collective;
  call.input = memory.at(0);
  call.output = memory.at(2048);
  call.count = kCount;
  return call;
}

std::string refusal(const Call& call, Rank rank = 0, int ranks = kRanks) {
  const Status status = check(call, rank, ranks);
  EXPECT_TRUE(status.ok() || status.code() == Code::invalid_argument) << status.text();
  return status.ok() ? "accepted" : std::string(status.text());
}

std::vector<Collective> all_collectives() {
  std::vector<Collective> all;
  for (int number = 0; number < kCollectiveCount; ++number) all.push_back(static_cast<Collective>(number));
  return all;
}

class EachCollective : public ::testing::TestWithParam<Collective> {
 protected:
  Memory memory_;
  Call call_ = call_of(GetParam(), memory_);
};

INSTANTIATE_TEST_SUITE_P(Core, EachCollective, ::testing::ValuesIn(all_collectives()),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(EachCollective, IsAcceptedOnEveryRank) {
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(refusal(call_, rank), "accepted") << rank;
}

// The parts that all ranks together give and take.
TEST_P(EachCollective, MovesAsManyPartsAsItsDefinitionSays) {
  const std::uint64_t part = kCount * sizeof(float);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    in += input_bytes(call_, rank, kRanks) / part;
    out += output_bytes(call_, rank, kRanks) / part;
  }
  const std::array<std::pair<std::uint64_t, std::uint64_t>, kCollectiveCount> parts = {
      {{4, 4}, {4, 16}, {16, 4}, {1, 4}, {4, 1}, {16, 16}, {4, 4}, {4, 4}, {0, 0}}};
  EXPECT_EQ(std::pair(in, out), parts[static_cast<std::size_t>(GetParam())]);
}

TEST_P(EachCollective, OfNothingNeedsNoBuffers) {
  call_.count = 0;
  call_.input = nullptr;
  call_.output = nullptr;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(refusal(call_, rank), "accepted");
    EXPECT_EQ(in_place(call_, rank, kRanks), InPlace::no);
  }
}

// A rank that gives or receives nothing may pass null; each other rank is told how many bytes it must provide.
TEST_P(EachCollective, NeedsABufferExactlyWhereItMovesBytes) {
  for (Rank rank = 0; rank < kRanks; ++rank) {
    for (const bool input : {true, false}) {
      Call call = call_;
      if (input)
        call.input = nullptr;
      else
        call.output = nullptr;
      const std::uint64_t bytes = input ? input_bytes(call, rank, kRanks) : output_bytes(call, rank, kRanks);
      const std::string wanted = bytes == 0 ? "accepted"
                                            : std::string(input ? "sendbuff" : "recvbuff") + ": null, but " +
                                                  std::to_string(bytes) + " bytes are needed";
      EXPECT_EQ(refusal(call, rank), wanted) << "rank " << rank;
    }
  }
}

TEST_P(EachCollective, NamesARootOutsideTheRanksIfItHasOne) {
  for (const Rank root : {-1, kRanks, std::numeric_limits<Rank>::max()}) {
    call_.root = root;
    const std::string wanted =
        is_rooted(GetParam()) ? "root: " + std::to_string(root) + " is not one of the ranks 0 to 3" : std::string("accepted");
    EXPECT_EQ(refusal(call_), wanted);
  }
}

TEST_P(EachCollective, IsRefusedIfItsBytesDoNotFitTheAddressSpace) {
  // 2^62 bytes is the limit of a call over all ranks.
  const std::uint64_t most = (std::uint64_t{1} << 62) / sizeof(double) / kRanks;
  call_.type = DataType::float64;
  call_.count = most + 1;
  EXPECT_EQ(refusal(call_), "count: " + std::to_string(most + 1) + " elements of double on 4 ranks exceed the address space");
  call_.count = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(refusal(call_), HasSubstr("count: 18446744073709551615 elements"));
}

TEST_P(EachCollective, IsDescribedByWhatAMismatchNeeds) {
  const std::string text = describe(GetParam(), 8, DataType::bfloat16, ReduceOp::avg, 2);
  EXPECT_THAT(text, ::testing::StartsWith(std::string(name_of(GetParam()))));
  const bool barrier = GetParam() == Collective::barrier;
  EXPECT_EQ(text.find("of 8 bfloat16") != std::string::npos, !barrier);
  EXPECT_EQ(text.find(", avg") != std::string::npos, reduces(GetParam()) && !barrier);
  EXPECT_EQ(text.find(", root 2") != std::string::npos, is_rooted(GetParam()));
}

// The bytes of input and output that are one memory are allowed at one place only, if at all.
TEST_P(EachCollective, AcceptsOverlapOnlyInPlace) {
  if (GetParam() == Collective::barrier) return;
  int accepted = 0;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    const std::uint64_t in = input_bytes(call_, rank, kRanks);
    const std::uint64_t out = output_bytes(call_, rank, kRanks);
    if (in == 0 || out == 0) continue;
    for (std::size_t at = 2048 - in + sizeof(float); at < 2048 + out; at += sizeof(float)) {
      call_.input = memory_.at(at);
      const bool same = in_place(call_, rank, kRanks) == InPlace::yes;
      EXPECT_EQ(refusal(call_, rank),
                same ? "accepted"
                     : "sendbuff, recvbuff overlap (" + std::string(name_of(GetParam())) + " allows only its in-place form)");
      accepted += same ? 1 : 0;
    }
    for (const std::size_t beside : {2048 - in, 2048 + out}) {
      call_.input = memory_.at(beside);
      EXPECT_EQ(refusal(call_, rank), "accepted") << "adjacent memory does not overlap";
    }
  }
  const bool rooted = is_rooted(GetParam());
  EXPECT_EQ(accepted, GetParam() == Collective::all_to_all ? 0 : rooted ? 1 : kRanks);
}

TEST(CallCheck, NamesTheTypeThatIsNone) {
  Memory memory;
  Call call = call_of(Collective::all_reduce, memory);
  for (const int type : {kDataTypeCount, 255}) {
    call.type = static_cast<DataType>(type);
    EXPECT_EQ(refusal(call), "datatype: " + std::to_string(type) + " is not a setoDataType_t");
  }
}

TEST(CallCheck, NamesTheOperationThatIsNone) {
  Memory memory;
  Call call = call_of(Collective::all_reduce, memory);
  for (const int op : {kReduceOpCount, 255}) {
    call.op = static_cast<ReduceOp>(op);
    EXPECT_EQ(refusal(call), "op: " + std::to_string(op) + " is not a setoRedOp_t value");
  }
}

TEST(CallCheck, BitwiseOperationsTakeIntegersOnly) {
  Memory memory;
  Call call = call_of(Collective::all_reduce, memory);
  call.count = 1;
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      call.type = static_cast<DataType>(type);
      call.op = static_cast<ReduceOp>(op);
      const bool wrong = is_bitwise(call.op) && !is_integer(call.type);
      const std::string text = "op: " + std::string(name_of(call.op)) + " takes integers, not " + std::string(name_of(call.type));
      EXPECT_EQ(refusal(call), wrong ? text : "accepted");
    }
  }
}

TEST(CallCheck, ABufferMustBeAlignedForItsType) {
  Memory memory;
  for (int type = 0; type < kDataTypeCount; ++type) {
    Call call = call_of(Collective::all_reduce, memory);
    call.type = static_cast<DataType>(type);
    const std::size_t element = size_of(call.type);
    for (std::size_t offset = 1; offset <= 8; ++offset) {
      call.input = memory.at(offset);
      const std::string text = refusal(call);
      if (offset % element == 0) {
        EXPECT_EQ(text, "accepted") << name_of(call.type) << " at " << offset;
      } else {
        EXPECT_THAT(text, ::testing::StartsWith("sendbuff: not aligned to " + std::to_string(element) + " bytes (" +
                                                std::string(name_of(call.type)) + " at 0x"));
      }
    }
  }
}

// Other ranks see only the beginning of a reason, so the argument and the fault come first.
TEST(CallCheck, TheBeginningOfAReasonIsEnoughForOtherRanks) {
  Memory memory;
  const auto passed_on = [](const Call& call) {
    Note note;
    put_reason(note, refusal(call));
    return reason_of(note);
  };
  Call call = call_of(Collective::all_reduce, memory);
  call.input = memory.at(1);
  EXPECT_EQ(passed_on(call), "sendbuff: not aligned to 4 bytes...");
  call.input = memory.at(2048 + 4);
  EXPECT_EQ(passed_on(call), "sendbuff, recvbuff overlap...");
  call.input = nullptr;
  EXPECT_EQ(passed_on(call), "sendbuff: null, but 24 bytes are needed");
}

TEST(CallCheck, ABufferMayEndWhereMemoryEndsAndNotBeyond) {
  Memory memory;
  Call call = call_of(Collective::all_reduce, memory);
  call.input = reinterpret_cast<const void*>(~std::uintptr_t{0} - kCount * sizeof(float) + 1 - sizeof(float));  // NOLINT
  EXPECT_EQ(refusal(call), "accepted");
  call.input = reinterpret_cast<const void*>(~std::uintptr_t{0} - kCount * sizeof(float) + 1 + sizeof(float));  // NOLINT
  EXPECT_EQ(refusal(call), "sendbuff: runs past the end of memory");
}

TEST(CallCheck, AFailureFoundEarlierIsKeptWhateverElseIsWrong) {
  Call call;
  call.type = static_cast<DataType>(200);
  call.wrong = failure(Code::invalid_usage, "datatype: 99 is not a setoDataType_t value");
  EXPECT_EQ(check(call, 0, 2).text(), "datatype: 99 is not a setoDataType_t value");
  EXPECT_EQ(check(call, 0, 2).code(), Code::invalid_usage);
}

TEST(CallCheck, ARequestedCodecNeedsASumOfWiderFloats) {
  Memory memory;
  Call call = call_of(Collective::all_reduce, memory);
  call.codec = codec_id("fp16");
  EXPECT_EQ(refusal(call), "accepted");
  call.op = ReduceOp::max;
  EXPECT_EQ(refusal(call),
            "codec: the call requests fp16, which accepts only sums of wider floats; this is all_reduce of 6 float, max");
  call.op = ReduceOp::sum;
  call.type = DataType::bfloat16;
  EXPECT_THAT(refusal(call), HasSubstr("this is all_reduce of 6 bfloat16, sum"));
  call.codec = codec_id("int8");
  EXPECT_EQ(refusal(call), "accepted") << "int8 has fewer bits than bfloat16";
  call.codec = codec_id("none");
  call.op = ReduceOp::max;
  EXPECT_EQ(refusal(call), "accepted") << "no codec suits every call";
}

// Uneven parts: the entry that is too large is named, counts and displacements alike.
TEST(CallCheck, NamesTheUnevenPartBeyondTheAddressSpace) {
  Memory memory;
  const std::uint64_t most = (std::uint64_t{1} << 62) / sizeof(float) / kRanks;
  for (std::size_t part = 0; part < kRanks; ++part) {
    std::array<std::uint64_t, kRanks> counts = {1, 1, 1, 1};
    std::array<std::uint64_t, kRanks> displacements = {0, 1, 2, 3};
    Call call = call_of(Collective::all_gather, memory);
    call.counts = counts;
    call.displacements = displacements;
    EXPECT_EQ(refusal(call), "accepted");
    counts.at(part) = most + 1;
    EXPECT_EQ(refusal(call), "counts: entry " + std::to_string(part) + " exceeds the address space");
    counts.at(part) = 1;
    displacements.at(part) = most * kRanks + 1;
    EXPECT_EQ(refusal(call), "counts: entry " + std::to_string(part) + " exceeds the address space");
  }
}

TEST(UnevenParts, TheInputMayLieInAGapOfTheOutput) {
  Memory memory;
  const std::array<std::uint64_t, kRanks> counts = {2, 2, 2, 2};
  const std::array<std::uint64_t, kRanks> displacements = {0, 4, 8, 12};  // gaps of two elements
  Call call = call_of(Collective::all_gather, memory);
  call.counts = counts;
  call.displacements = displacements;
  for (std::size_t element = 0; element + 2 <= 14; ++element) {
    call.input = memory.at(2048 + element * sizeof(float));
    const bool gap = element % 4 == 2;
    const bool own = element == 4;  // rank 1's part
    EXPECT_EQ(refusal(call, 1) == "accepted", gap || own) << element;
    EXPECT_EQ(in_place(call, 1, kRanks) == InPlace::yes, own) << element;
  }
}

TEST(UnevenParts, TheOutputEndsWithThePartThatEndsLastInAnyOrder) {
  Memory memory;
  const std::array<std::uint64_t, kRanks> counts = {3, 5, 0, 2};
  const std::array<std::uint64_t, kRanks> displacements = {20, 0, 1000, 7};
  Call call = call_of(Collective::all_gather, memory);
  call.counts = counts;
  EXPECT_EQ(output_bytes(call, 0, kRanks), 10 * sizeof(float)) << "adjacent";
  call.displacements = displacements;
  EXPECT_EQ(output_bytes(call, 0, kRanks), 23 * sizeof(float)) << "an empty part needs no room, wherever it would be";
  EXPECT_EQ(input_bytes(call, 1, kRanks), 5 * sizeof(float));
  EXPECT_EQ(input_bytes(call, 2, kRanks), 0U);
}

// In place, the input of rank r lies where the parts of the ranks before it end.
TEST(UnevenParts, InPlaceFollowsTheSumOfTheCountsBefore) {
  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random(seed);
  Memory memory;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> counts(kRanks);
    for (std::uint64_t& count : counts) count = 1 + random() % 20;
    const auto rank = static_cast<Rank>(random() % kRanks);
    std::uint64_t before = 0;
    for (Rank one = 0; one < rank; ++one) before += counts[static_cast<std::size_t>(one)];
    Call gathers = call_of(Collective::all_gather, memory);
    gathers.counts = counts;
    gathers.input = memory.at(2048 + before * sizeof(float));
    EXPECT_EQ(in_place(gathers, rank, kRanks), InPlace::yes);
    EXPECT_EQ(refusal(gathers, rank), "accepted");
    Call scatters = call_of(Collective::reduce_scatter, memory);
    scatters.counts = counts;
    scatters.output = memory.at(before * sizeof(float));
    EXPECT_EQ(in_place(scatters, rank, kRanks), InPlace::yes);
    EXPECT_EQ(refusal(scatters, rank), "accepted");
  }
}

// The shortcut for a call that repeats the last one must see each difference that needs a new check.
TEST(RepeatedCall, IsSeenOnlyIfNothingThatIsCheckedDiffers) {
  Memory memory;
  const Call last = call_of(Collective::all_reduce, memory);
  EXPECT_TRUE(repeats(last, last));
  const std::array<std::uint64_t, kRanks> parts = {1, 1, 1, 1};
  const std::vector<void (*)(Call&, Memory&, std::span<const std::uint64_t>)> changes = {
      [](Call& call, Memory& room, auto) { call.input = room.at(8); },
      [](Call& call, Memory& room, auto) { call.output = room.at(8); },
      [](Call& call, Memory&, auto) { ++call.count; },
      [](Call& call, Memory&, auto) { call.collective = Collective::broadcast; },
      [](Call& call, Memory&, auto) { call.type = DataType::int32; },
      [](Call& call, Memory&, auto) { call.op = ReduceOp::max; },
      [](Call& call, Memory&, auto) { call.root = 1; },
      [](Call& call, Memory&, auto) { call.algorithm = 1; },
      [](Call& call, Memory&, auto) { call.codec = 2; },
      [](Call& call, Memory&, auto) { call.deterministic = true; },
      [](Call& call, Memory&, auto numbers) { call.counts = numbers; },
      [](Call& call, Memory&, auto numbers) { call.displacements = numbers; },
      [](Call& call, Memory&, auto) { call.wrong = failure(Code::invalid_argument, "wrong"); },
  };
  for (std::size_t index = 0; index < changes.size(); ++index) {
    Call call = last;
    changes[index](call, memory, parts);
    EXPECT_FALSE(repeats(last, call)) << "change " << index;
  }
  Call uneven = last;
  uneven.counts = parts;
  EXPECT_FALSE(repeats(uneven, last));
}

TEST(RepeatedCall, MayDifferInWhatEachCallBringsItself) {
  Memory memory;
  const Call last = call_of(Collective::all_reduce, memory);
  Call call = last;
  call.deadline_ms = 5;
  call.mark = {"gradients", 7};
  EXPECT_TRUE(repeats(last, call));
}

TEST(ScalarSize, IsThatOfTheAccumulator) {
  EXPECT_EQ(scalar_size(DataType::int8), 1U);
  EXPECT_EQ(scalar_size(DataType::uint64), 8U);
  EXPECT_EQ(scalar_size(DataType::float16), 4U);
  EXPECT_EQ(scalar_size(DataType::float8e5m2), 4U);
  EXPECT_EQ(scalar_size(DataType::float64), 8U);
  EXPECT_EQ(scalar_size(static_cast<DataType>(kDataTypeCount)), 0U) << "no type: nothing is copied";
}

TEST(CallRecord, NamesTheRootOnlyIfTheCollectiveHasOne) {
  Memory memory;
  for (const Collective collective : all_collectives()) {
    Call call = call_of(collective, memory);
    call.root = 3;
    FlightRecorder recorder(1);
    recorder.issue(recorded(call, {24, 2, 3, 0xfeedU}), 9, {});
    const RecordedCall::Parts parts = recorder.read().at(0).call;
    EXPECT_EQ(parts.root, is_rooted(collective) ? 3 : 0) << name_of(collective);
    EXPECT_EQ(parts.collective, collective);
    EXPECT_EQ(parts.count, kCount);
    EXPECT_EQ(parts.bytes, 24U);
    EXPECT_EQ(parts.algorithm, 2);
    EXPECT_EQ(parts.codec, 3);
    EXPECT_EQ(parts.digest, 0xfeedU);
  }
}

}  // namespace
}  // namespace seto

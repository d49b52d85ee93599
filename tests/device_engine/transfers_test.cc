// Sends and receives: the kernel's source on threads of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/device_engine/emulated_transfers.h"

namespace seto::support {
namespace {

using ::testing::HasSubstr;
using Call = EmulatedTransfers::Call;
using Direction = LocalTransfer::Direction;
using Launch = EmulatedTransfers::Launch;
using kernels::TransferLane;

// A group of messages as the launches of all ranks.
std::vector<Launch> group_of(std::size_t ranks, const std::vector<TestMessage>& messages, std::uint32_t most_blocks = 4) {
  std::vector<Launch> launches(ranks);
  for (Launch& launch : launches) launch.most_blocks = most_blocks;
  for (const TestMessage& message : messages) {
    launches[message.sender].calls.push_back({true, message});
    launches[message.receiver].calls.push_back({false, message});
  }
  return launches;
}

std::vector<std::vector<Launch>> one_each(const std::vector<Launch>& group) {
  std::vector<std::vector<Launch>> launches;
  for (const Launch& launch : group) launches.push_back({launch});
  return launches;
}

TEST(EmulatedTransfer, MovesMessagesOfAllSizes) {
  EmulatedTransfers devices(2);
  const std::uint64_t slot = devices.area().slot_content();
  const std::uint64_t all = slot * devices.area().channels() * devices.area().depth();
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{4096}, slot - 1, slot,
                                   slot + 1, 9 * slot + 5, all, all + 1, 3 * all + 17}) {
    devices.run(one_each(group_of(2, {{0, 1, size}})));
    EXPECT_EQ(devices.stopped(), "") << size;
    EXPECT_EQ(devices.wrong(), "") << size;
  }
}

// Both ranks send more than the slots hold before they receive, in one launch.
TEST(EmulatedTransfer, RanksSendToEachOther) {
  EmulatedTransfers devices(2);
  devices.run(one_each(group_of(2, {{0, 1, 3 << 20}, {1, 0, 2 << 20}, {0, 1, 5}, {1, 0, 0}}, 1)));
  EXPECT_EQ(devices.stopped(), "");
  EXPECT_EQ(devices.wrong(), "");
}

TEST(EmulatedTransfer, ASmallMessageIsTakenBeforeItsReceiverComes) {
  EmulatedTransfers devices(2);
  const std::vector<Launch> group = group_of(2, {{0, 1, 1000}});
  devices.run({{group[0]}, {}}, 20'000);
  EXPECT_EQ(devices.stopped(), "");
  devices.run({{}, {group[1]}}, 20'000);
  EXPECT_EQ(devices.stopped(), "");
  EXPECT_EQ(devices.wrong(), "");
}

std::vector<TestMessage> random_messages(std::size_t ranks, std::mt19937& random) {
  std::vector<TestMessage> messages;
  const std::size_t count = 1 + random() % (3 * ranks);
  for (std::size_t i = 0; i < count; ++i) {
    TestMessage message;
    message.sender = random() % ranks;
    message.receiver = (message.sender + 1 + random() % (ranks - 1)) % ranks;
    const std::uint64_t most = std::uint64_t{1} << random() % 19;
    message.size = random() % most;
    message.label = random() % 3;
    messages.push_back(message);
  }
  return messages;
}

class EmulatedTransferGroups : public testing::TestWithParam<int> {};

// Ranks have different numbers of blocks, and go on to their next group on their own.
TEST_P(EmulatedTransferGroups, OfRandomMessages) {
  const auto ranks = static_cast<std::size_t>(GetParam());
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    EmulatedTransfers devices(ranks);
    std::vector<std::vector<Launch>> launches(ranks);
    for (int group = 0; group < 5; ++group) {
      std::vector<Launch> of_ranks = group_of(ranks, random_messages(ranks, random));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        of_ranks[rank].most_blocks = static_cast<std::uint32_t>(1 + random() % 5);
        launches[rank].push_back(of_ranks[rank]);
      }
    }
    devices.run(launches);
    ASSERT_EQ(devices.stopped(), "");
    ASSERT_EQ(devices.wrong(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedTransferGroups, testing::Values(2, 3, 5, 8), testing::PrintToStringParamName());

// ---- what does not match

void expect_refused(const TestMessage& sent, const TestMessage& expected, std::uint64_t exchange_of_receiver = 0) {
  EmulatedTransfers devices(2);
  std::vector<Launch> group(2);
  group[0].calls.push_back({true, sent});
  group[1].calls.push_back({false, expected});
  group[1].exchange = exchange_of_receiver;
  devices.run(one_each(group), 500);
  EXPECT_THAT(devices.stopped(), HasSubstr("rank 1: receive from 0: refused"));
  const kernels::TransferReport& report = devices.report(1, {Direction::receive, 0}, 0);
  EXPECT_EQ(report.own_size, expected.size);
  EXPECT_EQ(report.their_size, sent.size);
  EXPECT_EQ(report.their_label, sent.label);
}

TEST(EmulatedTransferFaults, AMessageOfAnotherLengthOrTypeIsRefused) {
  expect_refused({0, 1, 400}, {0, 1, 404});
  expect_refused({0, 1, 5 << 20}, {0, 1, 4});
  expect_refused({0, 1, 4}, {0, 1, 5 << 20});
  expect_refused({0, 1, 0}, {0, 1, 8});
  expect_refused({0, 1, 400, 7}, {0, 1, 400, 8});
  expect_refused({0, 1, 400, 7, 1}, {0, 1, 400, 7, 1}, 1);  // of another exchange
}

TEST(EmulatedTransferFaults, WhatNeverComesIsStoppedAndNamed) {
  EmulatedTransfers devices(3);
  const std::vector<Launch> group = group_of(3, {{0, 1, 10}, {2, 1, 20}, {2, 1, 30}});
  devices.run({{group[0]}, {group[1]}, {}}, 100);
  EXPECT_EQ(devices.stopped(), "rank 1: receive from 2: stopped\n");
  EXPECT_EQ(devices.report(1, {Direction::receive, 2}, 0).message, 0U);
}

// ---- the area

TEST(TransferAreas, EndsOfAllPairsFitAndDoNotOverlap) {
  for (const std::size_t ranks : {2, 3, 4, 7, 8, 16, 33, 64}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    constexpr std::uint64_t kBegin = 1280;
    const Result<TransferArea> made = TransferArea::of(ranks, kBegin);
    ASSERT_TRUE(made.ok()) << made.status().text();
    const TransferArea& area = made.value();
    // Workspaces that follow each other, so that an end in the wrong one is found.
    std::vector<kernels::Address> workspaces;
    for (std::size_t rank = 0; rank < ranks; ++rank) workspaces.push_back(rank << 32);
    std::map<std::uint64_t, std::uint64_t> used;  // begin, size
    const auto use = [&](std::uint64_t begin, std::uint64_t size, std::size_t owner) {
      EXPECT_EQ(begin >> 32, owner);
      EXPECT_GE(begin & 0xFFFFFFFFU, kBegin);
      EXPECT_LE((begin & 0xFFFFFFFFU) + size, kBegin + TransferArea::kSize);
      EXPECT_TRUE(used.emplace(begin, size).second);
    };
    const std::uint64_t slots = std::uint64_t{area.depth()} * (area.slot_content() + kernels::kSliceHeaderSize);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::size_t peer = 0; peer < ranks; ++peer)
        for (std::uint32_t channel = 0; channel < area.channels() && peer != rank; ++channel) {
          const TransferLane out = area.lane(rank, {Direction::send, static_cast<Rank>(peer)}, channel, workspaces);
          const TransferLane in = area.lane(peer, {Direction::receive, static_cast<Rank>(rank)}, channel, workspaces);
          EXPECT_EQ(out.slots, in.slots);
          EXPECT_EQ(out.posted, in.posted);
          EXPECT_EQ(out.read, in.read);
          EXPECT_EQ(area.pair_of(out.report), (LocalTransfer{Direction::send, static_cast<Rank>(peer)}));
          EXPECT_EQ(area.pair_of(in.report), (LocalTransfer{Direction::receive, static_cast<Rank>(rank)}));
          EXPECT_LT(out.report, area.lanes());
          use(out.slots, slots, peer);
          use(out.posted, kernels::kFlagStride, peer);
          use(out.read, kernels::kFlagStride, rank);
          use(out.state, kernels::kFlagStride, rank);
          use(in.state, kernels::kFlagStride, peer);
          EXPECT_EQ(out.slots % TransferArea::kAlignment, 0U);
        }
    for (auto each = used.begin(); std::next(each) != used.end(); ++each)
      ASSERT_LE(each->first + each->second, std::next(each)->first);
  }
  EXPECT_EQ(TransferArea::of(100'000, 0).status().code(), Code::invalid_usage);
}

TEST(TransferAreas, StagedEndsOfAllPairsFitAndDoNotOverlap) {
  for (const std::size_t ranks : {2, 3, 8, 33}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    constexpr std::uint64_t kBegin = 1280, kStaging = std::uint64_t{1} << 40;
    const Result<TransferArea> made = TransferArea::of(ranks, kBegin);
    ASSERT_TRUE(made.ok()) << made.status().text();
    const TransferArea& area = made.value();
    const std::uint64_t slots = std::uint64_t{area.depth()} * (area.slot_content() + kernels::kSliceHeaderSize);
    constexpr std::size_t kRank = 1;
    std::map<std::uint64_t, std::uint64_t> used;  // begin, size
    const auto use = [&](std::uint64_t begin, std::uint64_t size) {
      EXPECT_LE(begin + size, TransferArea::kStagedSize);
      EXPECT_TRUE(used.emplace(begin, size).second);
    };
    for (std::size_t peer = 0; peer < ranks; ++peer)
      for (std::uint32_t channel = 0; channel < area.channels() && peer != kRank; ++channel)
        for (const Direction direction : {Direction::send, Direction::receive}) {
          const LocalTransfer pair{direction, static_cast<Rank>(peer)};
          const TransferArea::StagedChannel places = area.staged(kRank, pair, channel);
          const TransferLane lane = area.staged_lane(kRank, pair, channel, 0, kStaging);
          EXPECT_EQ(lane.slots, kStaging + places.slots);
          EXPECT_EQ(lane.posted, kStaging + places.posted);
          EXPECT_EQ(lane.read, kStaging + places.read);
          EXPECT_LT(lane.state, kBegin + TransferArea::kSize);  // in the workspace
          EXPECT_EQ(places.slots % TransferArea::kAlignment, 0U);
          use(places.slots, slots);
          use(places.posted, kernels::kFlagStride);
          use(places.read, kernels::kFlagStride);
        }
    for (auto each = used.begin(); std::next(each) != used.end(); ++each)
      ASSERT_LE(each->first + each->second, std::next(each)->first);
  }
}

TEST(TransferPrograms, AShortMessageUsesOneChannel) {
  const Result<TransferArea> area = TransferArea::of(2, 0);
  ASSERT_TRUE(area.ok());
  const std::vector<kernels::Address> workspaces(2);
  const auto begin_of = [&](std::uint64_t size) {
    const std::vector<DeviceTransfer> messages{{{Direction::send, 1}, {0, size, 0, 0}}};
    const std::vector<std::byte> program = transfer_program(area.value(), 0, workspaces, {messages, {}, 32});
    kernels::TransferProgram begin;
    std::memcpy(&begin, program.data(), sizeof begin);
    return begin;
  };
  EXPECT_EQ(begin_of(100).lane_count, 1U);
  EXPECT_EQ(begin_of(100).blocks, 1U);
  EXPECT_EQ(begin_of(1 << 20).lane_count, area.value().channels());
  EXPECT_EQ(begin_of(1 << 20).blocks, area.value().channels());
}

}  // namespace
}  // namespace seto::support

// The words in which seto explain states the facts of a tier.

#include "src/report/explain_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/base/json_writer.h"

namespace seto {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TierFacts facts_of_test() {
  TierFacts facts;
  facts.tier = "world";
  facts.members = 2;
  facts.latency_seconds = 0.03;
  facts.latency_origin = "half the round trip of 0>1, measured";
  facts.bytes_per_second = 125e6;
  facts.rate_origin = "assumed";
  facts.message_seconds = 2e-6;
  facts.link = "0>1";
  facts.flow.window_bytes = std::uint64_t{150} << 20;
  facts.flow.sockets = 8;
  facts.has_flow = true;
  facts.slice_bytes = 65536;
  facts.codec = "exact";
  return facts;
}

TEST(AmountText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(amount_text(0), "0");
  EXPECT_EQ(amount_text(7), "7");
  EXPECT_EQ(amount_text(1536), "1.5K");
  EXPECT_EQ(amount_text(157'286'400), "150M");
  EXPECT_EQ(amount_text(1024.0 * 1024 * 1024 * 1024 * 3), "3T");
}

// Units begin at 1024, so there are amounts of four digits, and beyond the last unit of more.
TEST(AmountText, HasNoExponent) {
  EXPECT_EQ(amount_text(1000), "1000");
  EXPECT_EQ(amount_text(1023.0 * 1024), "1023K");
  EXPECT_EQ(amount_text(999.7 * 1024), "1000K");
  EXPECT_EQ(amount_text(999.4 * 1024), "999K");
  for (double bytes = 1; bytes < 1e18; bytes *= 1.07) EXPECT_THAT(amount_text(bytes), Not(HasSubstr("e"))) << bytes;
}

TEST(DurationText, UsesTheUnitThatFits) {
  EXPECT_EQ(duration_text(0), "0.00 us");
  EXPECT_EQ(duration_text(1.5e-6), "1.50 us");
  EXPECT_EQ(duration_text(999.99e-6), "999.99 us");
  EXPECT_EQ(duration_text(1e-3), "1.000 ms");
  EXPECT_EQ(duration_text(0.03), "30.000 ms");
  EXPECT_EQ(duration_text(1), "1.000 s");
  EXPECT_EQ(duration_text(90), "90.000 s");
}

TEST(TierText, StatesEachFactWithItsOrigin) {
  EXPECT_EQ(
      text_of(facts_of_test()),
      "  world 2 members: 30.000 ms (half the round trip of 0>1, measured), 125 MB/s (assumed); window 150M, 8 sockets for a "
      "pair of ranks, slices of 64K on the wire, exact\n");
}

TEST(TierText, NamesAnOriginOnceIfBothFactsHaveIt) {
  TierFacts facts = facts_of_test();
  facts.latency_origin = facts.rate_origin = "measured by exchanges";
  EXPECT_THAT(text_of(facts), HasSubstr(": 30.000 ms, 125 MB/s (measured by exchanges); "));
}

TEST(TierText, OfTheNodeHasNoSockets) {
  TierFacts facts = facts_of_test();
  facts.tier = "node";
  facts.has_flow = false;
  facts.long_message_bytes = 18'900;
  EXPECT_THAT(text_of(facts), EndsWith("; shared memory, long messages from 18.5K, exact\n"));
}

TEST(TierText, AgreesInNumber) {
  TierFacts facts = facts_of_test();
  facts.members = 1;
  facts.flow.sockets = 1;
  EXPECT_THAT(text_of(facts), HasSubstr("world 1 member: "));
  EXPECT_THAT(text_of(facts), HasSubstr(", 1 socket for a pair of ranks"));
}

TEST(TierText, NamesTheSettingThatOverridesAChoice) {
  TierFacts facts = facts_of_test();
  EXPECT_THAT(text_of(facts), Not(HasSubstr("SETO_")));
  facts.sockets_are_set = facts.slice_is_set = true;
  facts.codec = "fp16";
  facts.codec_origin = "permitted by the caller";
  EXPECT_THAT(text_of(facts), EndsWith("8 sockets for a pair of ranks (SETO_TCP_STREAMS), slices of 64K on the wire "
                                       "(SETO_SLICE_BYTES), fp16 (permitted by the caller)\n"));
}

TEST(TierText, StatesAnyRateWithoutAnExponent) {
  TierFacts facts = facts_of_test();
  for (const auto& [rate, text] : {std::pair{1e6, ", 1 MB/s"},
                                   {999.9e6, ", 1000 MB/s"},
                                   {1e9, ", 1 GB/s"},
                                   {12.34e9, ", 12.3 GB/s"},
                                   {1e12, ", 1000 GB/s"}}) {
    facts.bytes_per_second = rate;
    EXPECT_THAT(text_of(facts), HasSubstr(text));
  }
}

std::string json_of(const TierFacts& facts) {
  JsonWriter json;
  add_facts(json, facts);
  return std::move(json).text();
}

TEST(TierJson, LeavesOutWhatATierDoesNotHave) {
  TierFacts facts = facts_of_test();
  EXPECT_EQ(
      json_of(facts),
      R"({"tier":"world","members":2,"latency_seconds":0.03,)"
      R"("latency_origin":"half the round trip of 0>1, measured","bytes_per_second":1.25e+08,"rate_origin":"assumed","message_seconds":2e-06,)"
      R"("link":"0>1","window_bytes":157286400,"sockets":8,"wire_slice_bytes":65536,"codec":"none"})");
  facts.link.clear();
  facts.has_flow = false;
  facts.codec = "fp16";
  facts.codec_origin = "chosen for the link";
  EXPECT_THAT(json_of(facts), EndsWith(R"("message_seconds":2e-06,"codec":"fp16","codec_origin":"chosen for the link"})"));
}

TEST(GreatestLoss, IsThePartInWhichACandidateLosesMost) {
  const Tiers tiers = made_up_tiers(4, 2, 1).value();  // two ranks in a node, two nodes in a site
  Estimate chosen;
  Estimate lost;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "its slices overlap less") << "no part is longer";
  lost.memory_seconds = 1e-6;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "memory 1.00 us more");
  lost.step_seconds = 2e-6;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "steps 2.00 us more");
  lost.tiers[0].latency_seconds = 3e-6;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "hops on node 3.00 us more");
  lost.tiers[1].wire_seconds = 0.8;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "wire on site 800.000 ms more");
  lost.tiers[1].message_seconds = 0.9;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "messages on site 900.000 ms more");
  chosen.tiers[1].message_seconds = 0.9;
  chosen.tiers[1].wire_seconds = 0.8;
  EXPECT_EQ(greatest_loss(lost, chosen, tiers), "hops on node 3.00 us more") << "what both need is no loss";
}

}  // namespace
}  // namespace seto

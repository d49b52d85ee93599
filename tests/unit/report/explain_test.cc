#include "src/core/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/connect/context.h"

namespace seto {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Question question_on(Collective collective, int ranks) {
  Question question;
  question.collective = collective;
  question.ranks = ranks;
  question.bytes = part_bytes(collective, 64 << 20, ranks);
  return question;
}

std::string report(const Question& question, ReportFormat format = ReportFormat::text) {
  const Result<std::string> text = explain(question, Tiers::flat(question.ranks), {}, format);
  EXPECT_TRUE(text.ok()) << text.status().text();
  return text.value();
}

TEST(Explain, SizesAreWhatTheCollectiveHas) {
  EXPECT_THAT(report(question_on(Collective::all_reduce, 4)), StartsWith("all_reduce, 64M, 4 ranks, 1 tier\n"));
  EXPECT_THAT(report(question_on(Collective::broadcast, 4)), StartsWith("broadcast, 64M, 4 ranks"));
  EXPECT_THAT(report(question_on(Collective::all_gather, 4)), StartsWith("all_gather, parts of 16M, 4 ranks"));
  const std::string barrier = report(question_on(Collective::barrier, 4));
  EXPECT_THAT(barrier, StartsWith("barrier, 4 ranks"));
  EXPECT_THAT(barrier, Not(HasSubstr("slices")));
}

TEST(Explain, APinThatCannotBeFollowedIsSaid) {
  Question question = question_on(Collective::all_reduce, 4);
  question.pin = "tree";
  EXPECT_THAT(report(question), HasSubstr("\ntree is pinned, but all_reduce has none: chosen freely\n"));
  EXPECT_THAT(report(question, ReportFormat::json), HasSubstr("\"pin_ignored\""));
  question.pin = "hierarchical";
  EXPECT_THAT(report(question), HasSubstr("hierarchical is pinned, but it is impossible here (there is one tier"));
  question.pin = "ring";
  EXPECT_THAT(report(question), Not(HasSubstr("chosen freely")));
  EXPECT_THAT(report(question, ReportFormat::json), Not(HasSubstr("pin_ignored")));
}

TEST(Explain, SaysWhoseConstantsTheseAre) {
  const Question question = question_on(Collective::all_reduce, 2);
  EXPECT_THAT(report(question), HasSubstr("shipped constants: "));
  EXPECT_THAT(report(question), HasSubstr("; a communicator measures its own, or reads SETO_TUNING_FILE\n"));
  CostModel costs;
  costs.source = CostSource::file;
  EXPECT_THAT(explain(question, Tiers::flat(2), costs, ReportFormat::text).value(), Not(HasSubstr("measures its own")));
}

TEST(Explain, RanksThatOutnumberTheCoresAreCounted) {
  const int cores = usable_cores();
  EXPECT_THAT(report(question_on(Collective::all_reduce, cores)), Not(HasSubstr("a core")));
  const Question crowd = question_on(Collective::all_reduce, 3 * cores);
  EXPECT_THAT(report(crowd), HasSubstr("\n3 ranks a core"));
  // Each on a node of its own.
  const Tiers apart = made_up_tiers(3 * cores, 3 * cores, 1).value();
  EXPECT_THAT(explain(crowd, apart, {}, ReportFormat::text).value(), Not(HasSubstr("a core")));
}

}  // namespace
}  // namespace seto

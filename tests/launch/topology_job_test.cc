#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/launch/program.h"

// Commands that describe the job in which they run.
namespace seto::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Ranks 0 and 1 on one node and site, ranks 2 and 3 on another. All are processes of this machine.
Ended on_two_sites(const std::string& command) {
  const std::string place = "n=$((SETO_RANK / 2)); export SETO_HOST_ID=host$n SETO_SITE_ID=site$n; ";
  return run(
      {built("seto"), "run", "-n", "4", "--no-prefix", "--", "sh", "-c", place + "exec '" + built("seto") + "' " + command});
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(TopologyOfAJob, IsPrintedOnceWithEveryHostAndTheMeasuredLinks) {
  const Ended ended = on_two_sites("topo");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(count(ended.text, "site 0: 1 host\n"), 1U) << ended.text;
  EXPECT_EQ(count(ended.text, "site 1: 1 host\n"), 1U) << ended.text;
  const std::string tree = ended.text.substr(0, ended.text.find("rings, trees and rails"));
  EXPECT_EQ(count(tree, "\n  host "), 2U) << "once a host, not once a rank\n" << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("0 to 1: [0-9.]+ [mu]s round trip \\(measured\\)"));
  EXPECT_THAT(ended.text, AllOf(HasSubstr("NUMA node "), HasSubstr("ring of sites: 0 > 1 > 0")));
  EXPECT_THAT(ended.text, Not(HasSubstr("[file]"))) << "facts keep their sources on the way to rank 0";
}

TEST(TopologyOfAJob, IsJsonXmlOrADrawingToo) {
  EXPECT_THAT(on_two_sites("topo --json").text,
              AllOf(HasSubstr(R"("source":"measured")"), HasSubstr(R"("ring_of_sites":[0,1])")));
  const Ended xml = on_two_sites("topo --xml");
  EXPECT_EQ(count(xml.text, "<system version="), 1U) << xml.text;
  EXPECT_THAT(xml.text, AllOf(HasSubstr("<seto_link "), Not(HasSubstr("seto_source"))));
  EXPECT_THAT(on_two_sites("topo --svg -").text, HasSubstr(">site 1</text>"));
}

TEST(TopologyOfAJob, AFileIsDescribedAloneEvenInAJob) {
  const Ended ended = on_two_sites("topo --from /nowhere.xml");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.text, HasSubstr("cannot read /nowhere.xml"));
}

TEST(TopologyOfAJob, ExplainSpeaksOfItsCommunicator) {
  const Ended ended = on_two_sites("explain all_reduce 4M");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(count(ended.text, "all_reduce, 4M, 4 ranks, 2 tiers\n"), 1U) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("2 sites stated"));
  EXPECT_THAT(on_two_sites("explain all_reduce 8..64M").text, HasSubstr("all_reduce, 4 ranks: the candidate"));
  EXPECT_THAT(on_two_sites("explain all_reduce 4M --ranks 9").text, HasSubstr("9 ranks, 1 tier\n")) << "stated ranks are made up";
}

}  // namespace
}  // namespace seto::testing

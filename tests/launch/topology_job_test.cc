#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
  EXPECT_EQ(count(ended.text, "site site0: 1 host\n"), 1U) << ended.text;
  EXPECT_EQ(count(ended.text, "site site1: 1 host\n"), 1U) << ended.text;
  const std::string tree = ended.text.substr(0, ended.text.find("rings, trees and rails"));
  EXPECT_EQ(count(tree, "\n  host "), 2U) << "once a host, not once a rank\n" << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("site0 to site1: [0-9.]+ [mu]s round trip \\(measured\\)"));
  EXPECT_THAT(ended.text, AllOf(HasSubstr("NUMA node "), HasSubstr("ring of sites: site0 > site1 > site0")));
  EXPECT_THAT(ended.text, Not(HasSubstr("[file]"))) << "facts keep their sources on the way to rank 0";
}

TEST(TopologyOfAJob, IsJsonXmlOrADrawingToo) {
  EXPECT_THAT(on_two_sites("topo --json").text,
              AllOf(HasSubstr(R"("source":"measured")"), HasSubstr(R"("ring_of_sites":[0,1])")));
  const Ended xml = on_two_sites("topo --xml");
  EXPECT_EQ(count(xml.text, "<system version="), 1U) << xml.text;
  EXPECT_THAT(xml.text, AllOf(HasSubstr("<seto_link "), Not(HasSubstr("seto_source"))));
  EXPECT_THAT(on_two_sites("topo --svg -").text, HasSubstr(">site site1</text>"));
}

TEST(TopologyOfAJob, IsPrintedWithTheRatesThatAProbeMeasures) {
  const Ended ended = on_two_sites("topo --probe");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("probed 2 links, [0-9]+ MB\n"));
  EXPECT_THAT(ended.text, AllOf(ContainsRegex("site0 to site1: [0-9.]+ [MG]B/s, [0-9.]+ [mu]s round trip \\(measured\\)"),
                                ContainsRegex("site1 to site0: [0-9.]+ [MG]B/s, [0-9.]+ [mu]s round trip \\(measured\\)")));
  EXPECT_EQ(on_two_sites("topo --probe --from x.xml").status, 2);
}

TEST(TopologyOfAJob, IsProbedBetweenSitesThatShareMemoryToo) {
  const Ended ended = run({built("seto"), "run", "-n", "2", "--no-prefix", "--", "sh", "-c",
                           "export SETO_SITE_ID=site$SETO_RANK; exec '" + built("seto") + "' topo --probe"});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("probed 2 links, [0-9]+ MB\n"));
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

class TopologyFileOfAJob : public ::testing::Test {
 protected:
  // Ranks 0 and 1 on host0, ranks 2 and 3 on host1. `file` may name the rank: $SETO_RANK.
  [[nodiscard]] Ended on_two_hosts(const std::string& file, const std::string& command) const {
    const std::string place = "export SETO_HOST_ID=host$((SETO_RANK / 2)) SETO_TOPOLOGY_FILE=\"" + (folder_ / file) +
                              "\"; exec '" + built("seto") + "' ";
    return run({built("seto"), "run", "-n", "4", "--no-prefix", "--", "sh", "-c", place + command});
  }

  Scratch folder_;
};

std::string file_of(const std::string& hosts) {
  return R"(<system version="1"><seto_site name="tokyo"/><seto_site name="osaka &amp; co"/>)" + hosts +
         R"(<seto_link kind="uplink" site="0" bytes_per_second="25000000"/><seto_link kind="uplink" site="1" bytes_per_second="12500000"/>
</system>)";
}
constexpr const char* kBothHosts =
    R"(<seto_host hash="0x1" name="host0" site="0"/><seto_host hash="0x2" name="host1" site="1"/>)";

TEST_F(TopologyFileOfAJob, StatesItsSitesAndTheirRates) {
  folder_.write("two.xml", file_of(kBothHosts));
  const Ended topo = on_two_hosts("two.xml", "topo");
  EXPECT_EQ(topo.status, 0) << topo.text;
  EXPECT_THAT(topo.text,
              AllOf(HasSubstr("site tokyo: 1 host\n"), HasSubstr("site osaka & co: 1 host\n"), HasSubstr("25.0 MB/s (file)"),
                    ContainsRegex("tokyo to osaka & co: [0-9.]+ [mu]s round trip \\(measured\\)")));
  const Ended explain = on_two_hosts("two.xml", "explain all_reduce 4M");
  EXPECT_THAT(explain.text,
              AllOf(HasSubstr("all_reduce, 4M, 4 ranks, 2 tiers\n"), HasSubstr("2 sites stated by SETO_TOPOLOGY_FILE"),
                    HasSubstr("site 0 sends 200 Mbit/s and receives 200 Mbit/s (file)")));
  const Ended probed = on_two_hosts("two.xml", "topo --probe");
  EXPECT_EQ(probed.status, 0) << probed.text;
  EXPECT_THAT(probed.text, ContainsRegex("tokyo to osaka & co: [0-9.]+ [MG]B/s"));
}

TEST_F(TopologyFileOfAJob, ThatIsOfOtherHostsIsSaidOnceAndNothingElseChanges) {
  folder_.write("other.xml", file_of(R"(<seto_host hash="0x1" name="host7"/>)"));
  const Ended ended = on_two_hosts("other.xml", "explain all_reduce 4M");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(count(ended.text, "SETO_TOPOLOGY_FILE is not used: it states no named site for any host of this job"), 1U)
      << ended.text;
}

TEST_F(TopologyFileOfAJob, ThatIsNoFileIsNamed) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const Ended ended = on_two_hosts("pipe", "topo");
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.text, HasSubstr("pipe: it is no regular file"));
}

TEST_F(TopologyFileOfAJob, IsFoundAgainByTheIdsOfHosts) {
  const Ended first = on_two_sites("topo --xml");
  EXPECT_THAT(first.text, AllOf(HasSubstr("name=\"host0\""), HasSubstr("name=\"host1\"")));
}

TEST_F(TopologyFileOfAJob, MustHaveEqualContentOnAllRanks) {
  for (const int rank : {0, 1, 2, 3}) folder_.write("of" + std::to_string(rank) + ".xml", file_of(rank == 3 ? "" : kBothHosts));
  const Ended ended = on_two_hosts("of$SETO_RANK.xml", "topo");
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.text, ContainsRegex("SETO_TOPOLOGY_FILE is a file with digest [0-9a-f]+ on rank 0 and a file with digest "
                                        "[0-9a-f]+ on rank 3"));
}

TEST_F(TopologyFileOfAJob, ThatIsMalformedIsNamedWithItsLine) {
  folder_.write("bad.xml", "<system version=\"1\">\n<cpu numaid=\"x\"/></system>");
  const Ended ended = on_two_hosts("bad.xml", "topo");
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.text, HasSubstr("bad.xml: line 2: <cpu>: numaid: 'x' is not a number"));
}

}  // namespace
}  // namespace seto::testing

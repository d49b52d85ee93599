// seto topo, as users run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cluster/programs.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/h100_host.h"

namespace seto::testing {
namespace {

namespace files = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TopoCommand : public ::testing::Test {
 protected:
  TopoCommand() {
    std::string pattern = (files::temp_directory_path() / "seto_topo_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream(path("h100.xml")) << h100_host_xml();
  }
  ~TopoCommand() override { files::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  files::path folder_;
};

TEST_F(TopoCommand, prints_hosts_of_files_in_sites) {
  const std::string file = path("h100.xml");
  const Ended ended = seto("topo --from tokyo=" + file + " --from osaka=" + file + " --copies 2");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, StartsWith("site tokyo: 2 hosts\n  host 1: 2 NUMA nodes, 8 GPUs, 16 ports\n"
                                     "    all GPUs are joined by switches of GPU links\n"));
  EXPECT_THAT(ended.text,
              AllOf(HasSubstr("\n  host 2: as host 1\nsite osaka: 2 hosts\n  host 3: as host 1\n  host 4: as host 1\n"),
                    HasSubstr("tokyo to osaka: not known"), HasSubstr("32 ranks, node 8 x site 2 x world 2"),
                    HasSubstr("nearest ports: mlx5_14 mlx5_15\n")));
}

TEST_F(TopoCommand, probes_nothing_outside_a_job) {
  const Ended ended = seto("topo --probe");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.text,
            "seto: --probe: this is no job, so there is nothing to probe: seto run -n 2 --hosts a,b -- seto topo --probe\n");
}

TEST_F(TopoCommand, writes_a_file_that_it_reads_again) {
  const std::string command = "topo --xml --from a=" + path("h100.xml") + " --from b=" + path("h100.xml");
  const Ended first = seto(command);
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_THAT(first.text, StartsWith("<system version=\"1\">\n  <seto_site name=\"a\"/>\n"));
  std::ofstream(path("both.xml")) << first.text;
  EXPECT_EQ(seto("topo --xml --from " + path("both.xml")).text, first.text);
  EXPECT_THAT(seto("topo --json --from " + path("both.xml")).text, StartsWith(R"({"sites":[{"name":"a"},{"name":"b"}])"));
}

TEST_F(TopoCommand, names_the_file_the_line_and_the_reason) {
  std::ofstream(path("bad.xml")) << "<system version=\"1\">\n<cpu numaid=\"x\"/></system>";
  const Ended bad = seto("topo --from " + path("bad.xml"));
  EXPECT_EQ(bad.status, 2) << bad.text;
  EXPECT_THAT(bad.text, HasSubstr(path("bad.xml") + ": line 2: <cpu>: numaid: 'x' is not a number from -1 to 4095"));
  EXPECT_THAT(seto("topo --from /nowhere.xml").text, HasSubstr("cannot read /nowhere.xml: No such file"));
  EXPECT_EQ(seto("topo --from /nowhere.xml").status, 1);
  EXPECT_EQ(seto("topo --copies 0 --from " + path("h100.xml")).status, 2);
  EXPECT_EQ(seto("topo --copies 5000 --from " + path("h100.xml")).status, 2);
  EXPECT_EQ(seto("topo --json --xml --from " + path("h100.xml")).status, 2);
}

// The size is that of the goal: 8 GPUs, 2 hosts, 2 sites.
TEST_F(TopoCommand, draws_two_sites_of_two_hosts) {
  const std::string file = path("h100.xml");
  const Ended ended = seto("topo --from tokyo=" + file + " --from osaka=" + file + " --copies 2 --svg " + path("out.svg"));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text, "");
  std::stringstream drawing;
  drawing << std::ifstream(path("out.svg")).rdbuf();
  EXPECT_THAT(drawing.str(), AllOf(StartsWith("<svg xmlns="), HasSubstr(">site osaka</text>"), HasSubstr(">GPU 7</text>"),
                                   HasSubstr(">mlx5_14 +1</text>"), HasSubstr("tokyo to osaka: not known")));
  EXPECT_THAT(seto("topo --from " + file + " --svg /nowhere/out.svg").text,
              HasSubstr("cannot write /nowhere/out.svg: No such file"));
  EXPECT_EQ(seto("topo --json --svg - --from " + file).status, 2);
}

TEST_F(TopoCommand, explains_a_call_on_the_hosts_of_a_file) {
  std::ofstream(path("both.xml"))
      << seto("topo --xml --from tokyo=" + path("h100.xml") + " --from osaka=" + path("h100.xml")).text;
  const Ended ended = seto("explain all_reduce 64M --topo " + path("both.xml"));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(StartsWith("all_reduce, 64M, 16 ranks, 2 tiers\n"), HasSubstr(" world 2 members: ")));
  EXPECT_THAT(seto("explain all_reduce 64M --ranks 64 --from " + path("h100.xml")).text, HasSubstr("64 ranks, 2 tiers\n"));
  EXPECT_THAT(
      seto("explain all_reduce --json --size 8..1G --topo " + path("both.xml")).text,
      AllOf(StartsWith(R"({"collective":"all_reduce","ranks":16,"sizes":[{"bytes":8,)"), HasSubstr(R"("bytes":1073741824,)")));
  EXPECT_THAT(seto("explain all_reduce 8..1G --ranks 4").text, HasSubstr("crossovers: "));
  const Ended odd = seto("explain all_reduce 64M --ranks 3 --topo " + path("h100.xml"));
  EXPECT_EQ(odd.status, 2);
  EXPECT_THAT(odd.text, HasSubstr("3 is not a multiple"));
}

// One file states sites and their links, the other one the insides of hosts.
TEST_F(TopoCommand, explains_a_call_on_several_files_together) {
  std::ofstream(path("sites.xml")) << R"(<system version="1"><seto_site name="tokyo"/><seto_site name="osaka"/>
      <seto_link kind="between" from="0" to="1" bytes_per_second="250000000" round_trip_s="0.04"/>
      <seto_link kind="between" from="1" to="0" bytes_per_second="250000000" round_trip_s="0.04"/></system>)";
  const std::string files =
      "--topo " + path("sites.xml") + " --topo tokyo=" + path("h100.xml") + " --from osaka=" + path("h100.xml");
  const Ended ended = seto("explain all_reduce 64M " + files);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(StartsWith("all_reduce, 64M, 16 ranks, 2 tiers\n"),
                                HasSubstr("20.000 ms (half the round trip of tokyo>osaka, file), 250 MB/s (tokyo>osaka, file)")));
  EXPECT_EQ(seto("explain all_reduce 64M --sites 2 " + files).status, 2);
}

// A wrong file is named with its reason; it never ends the command in another way.
TEST_F(TopoCommand, explain_refuses_files_that_are_no_topology) {
  std::ofstream(path("bad.xml")) << "<system version=\"1\">\n<cpu numaid=\"x\"/></system>";
  EXPECT_THAT(seto("explain all_reduce 8 --topo " + path("bad.xml")).text, HasSubstr("bad.xml: line 2: <cpu>: numaid: 'x'"));
  std::ofstream(path("garbage.xml")) << std::string(1 << 20, 'x');
  for (const std::string& file : {path("bad.xml"), path("garbage.xml"), path("missing.xml"), path("")}) {
    const Ended ended = seto("explain all_reduce 8 --topo " + file);
    EXPECT_EQ(ended.status, 2) << file << ": " << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("topologyFile: ")) << file;
  }
  EXPECT_EQ(seto("explain all_reduce 8..4 --ranks 2").status, 2);
  EXPECT_EQ(seto("explain all_reduce 8..x").status, 2);
  EXPECT_EQ(seto("explain barrier --sites 2 --topo " + path("h100.xml")).status, 2);
}

TEST_F(TopoCommand, describes_this_machine) {
  const Ended ended = seto("topo");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text,
              AllOf(StartsWith("site 0: 1 host\n"), HasSubstr("NUMA node "), HasSubstr(" core"), HasSubstr("tiers, a rank")));
  EXPECT_THAT(seto("topo --xml").text, StartsWith("<system version=\"1\">\n  <seto_host hash=\"0x"));
}

TEST_F(TopoCommand, completes_a_hint_about_this_machine) {
  std::ofstream(path("hint.xml")) << R"(<system version="1"><cpu numaid="0" arch="hinted"/></system>)";
  const std::string alone = seto("topo --from " + path("hint.xml")).text;
  const std::string completed = seto("topo --this-machine --from " + path("hint.xml")).text;
  EXPECT_THAT(alone, AllOf(HasSubstr("hinted"), Not(HasSubstr("core"))));
  EXPECT_THAT(completed, AllOf(HasSubstr("hinted"), HasSubstr(" core")));
}

// Threads of one process share a host, so only the first one tells it.
SETO_TEST_ALONE(ApiTopology, a_communicator_tells_each_host_once) {
  ThreadRanks ranks(3);
  std::string text(1 << 20, '\0');
  std::size_t size = 0;
  ASSERT_TRUE(succeeded(setoCommTopology(ranks[0], text.data(), text.size(), &size)));
  text.resize(size);
  EXPECT_THAT(text, AllOf(StartsWith("<system version="), HasSubstr("<seto_host hash="), HasSubstr("seto_source=")));
  const setoTopologyText_t part = {"rank 0", nullptr, text.data(), text.size(), 0, 0};
  EXPECT_TRUE(succeeded(setoTopology(&part, 1, setoFormatText, nullptr, 0, &size)));
  for (int rank = 1; rank < 3; ++rank) {
    ASSERT_TRUE(succeeded(setoCommTopology(ranks[rank], nullptr, 0, &size)));
    EXPECT_EQ(size, 0U) << rank;
  }
  EXPECT_TRUE(failed(setoCommTopology(nullptr, nullptr, 0, &size), setoInvalidArgument, "comm"));
}

SETO_TEST_ALONE(ApiTopology, checks_its_arguments) {
  const std::string text = h100_host_xml();
  setoTopologyText_t file = {"h100", nullptr, text.data(), text.size(), 0, 0};
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoTopology(&file, 1, setoFormatText, nullptr, 0, &size)));
  EXPECT_GT(size, 1000U);
  EXPECT_TRUE(failed(setoTopology(nullptr, 1, setoFormatText, nullptr, 0, &size), setoInvalidArgument, "files"));
  EXPECT_TRUE(failed(setoTopology(&file, 1, none_of<setoFormat_t>(9), nullptr, 0, &size), setoInvalidArgument, "format: 9"));
  EXPECT_TRUE(failed(setoTopology(&file, 1, setoFormatText, nullptr, 7, &size), setoInvalidArgument, "text"));
  EXPECT_TRUE(failed(setoInfo(nullptr, setoFormatXml, nullptr, 0, &size), setoInvalidArgument, "format: 3"));
  file.copies = -1;
  EXPECT_TRUE(failed(setoTopology(&file, 1, setoFormatText, nullptr, 0, &size), setoInvalidArgument, "copies: -1"));
  file = {"empty", nullptr, nullptr, 5, 0, 0};
  EXPECT_TRUE(failed(setoTopology(&file, 1, setoFormatText, nullptr, 0, &size), setoInvalidArgument, "text 0 is NULL"));
}

}  // namespace
}  // namespace seto::testing

// seto plan simulate, as users run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cluster/programs.h"
#include "tests/support/h100_host.h"

namespace seto::testing {
namespace {

namespace files = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() {
    std::string pattern = (files::temp_directory_path() / "seto_plan_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream(path("h100.xml")) << h100_host_xml();
  }
  ~PlanCommand() override { files::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string two_sites() const { return "--topo a=" + path("h100.xml") + " --topo b=" + path("h100.xml"); }

 private:
  files::path folder_;
};

TEST_F(PlanCommand, predicts_a_call_on_files) {
  const Ended ended = seto("plan simulate " + two_sites() + " --copies 2 --algorithm hierarchical --size 64M");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, StartsWith("all_reduce, 64M, hierarchical"));
  EXPECT_THAT(ended.text, AllOf(HasSubstr("32 ranks\npredicted: "), HasSubstr("between sites: 125 MB/s each way"),
                                HasSubstr("a > b "), HasSubstr("NICs of a rank, sending")));
}

// Two sites of two hosts: explain and simulate choose the same, for the same ranks and links, and so give the same estimate.
TEST_F(PlanCommand, agrees_with_explain) {
  std::ofstream file(path("sites.xml"));
  file << R"(<system version="1"><seto_site name="a"/><seto_site name="b"/>)";
  for (int host = 0; host < 4; ++host)
    file << "<seto_host hash=\"" << host + 1 << "\" name=\"h" << host << "\" site=\"" << host / 2 << "\"/>";
  for (int site = 0; site < 2; ++site) {
    file << "<seto_link kind=\"uplink\" site=\"" << site << "\" bytes_per_second=\"125000000\"/>";
    file << "<seto_link kind=\"downlink\" site=\"" << site << "\" bytes_per_second=\"125000000\"/>";
  }
  for (int host = 0; host < 4; ++host)
    file << "<cpu host_hash=\"" << host + 1 << "\" numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\"/>";
  file << "</system>";
  file.close();
  for (const std::string ranks : {"", " --ranks 12"}) {
    const std::string explained = seto("explain all_reduce 64M --topo " + path("sites.xml") + ranks).text;
    const std::string simulated = seto("plan simulate --size 64M --topo " + path("sites.xml") + ranks).text;
    const std::size_t begin = simulated.find("closed form: ") + 13;
    ASSERT_GT(begin, 13U) << simulated;
    const std::string estimate = simulated.substr(begin, simulated.find(')', begin) - begin);
    EXPECT_THAT(explained, ::testing::ContainsRegex("\\* hierarchical in fp16 +" + estimate + "  chosen"));
    EXPECT_THAT(simulated,
                AllOf(StartsWith("all_reduce, 64M, hierarchical in fp16, "),
                      HasSubstr("\nnumbers travel in fp16 between sites, as in a job; SETO_CODEC=none: exact numbers\n")));
  }
  const std::string slow = seto("explain all_reduce 64M --ranks 4 --nodes 4 --sites 2", "SETO_SITE_UPLINK_MBIT=100").text;
  EXPECT_THAT(slow, AllOf(HasSubstr("12.5 MB/s (stated by the slowest site)"), HasSubstr("fp16 (chosen for the link)")));
  EXPECT_THAT(seto("explain all_reduce 64M --ranks 4 --nodes 4 --sites 2", "SETO_CALIBRATE=off").text, Not(HasSubstr("fp16")));
}

TEST_F(PlanCommand, explain_takes_copies_of_hosts_and_standard_input) {
  EXPECT_THAT(seto("explain all_reduce 64M " + two_sites() + " --copies 2").text, HasSubstr(", 32 ranks, "));
  EXPECT_THAT(seto("explain all_reduce 64M --from - < " + path("h100.xml")).text, HasSubstr(", 8 ranks, "));
  EXPECT_EQ(seto("explain all_reduce 64M --copies 2").status, 2) << "no file";
}

TEST_F(PlanCommand, writes_json_and_a_chart) {
  const std::string command = "plan simulate --topo " + path("h100.xml") + " --size 1M --collective all_gather";
  EXPECT_THAT(seto(command + " --json").text, StartsWith(R"({"collective":"all_gather","part_bytes":131072,"ranks":8,)"));
  ASSERT_EQ(seto(command + " --svg " + path("chart.svg")).status, 0);
  std::ifstream chart(path("chart.svg"));
  const std::string svg((std::istreambuf_iterator<char>(chart)), {});
  EXPECT_THAT(svg, AllOf(StartsWith("<svg "), HasSubstr("rank 7"), HasSubstr("message on its way")));
}

TEST_F(PlanCommand, says_what_is_wrong_with_its_arguments) {
  EXPECT_EQ(seto("plan").status, 2);
  EXPECT_EQ(seto("plan simulate --size 1M").status, 2) << "no topology";
  EXPECT_THAT(seto("plan simulate --topo /nowhere.xml --size 1M").text, HasSubstr("cannot read /nowhere.xml: No such file"));
  EXPECT_THAT(seto("plan simulate --topo " + path("h100.xml") + " --size big").text, HasSubstr("'big' is not a size"));
  const Ended pinned = seto("plan simulate --topo " + path("h100.xml") + " --size 1M --algorithm magic");
  EXPECT_EQ(pinned.status, 2);
  EXPECT_THAT(pinned.text, HasSubstr("magic cannot run here: all_reduce has no such algorithm"));
  EXPECT_THAT(seto("plan simulate " + two_sites() + " --size 1M --ranks 1").text, HasSubstr("1 are fewer than the 2 hosts"));
}

TEST_F(PlanCommand, predicts_calls_on_gpu_memory) {
  const std::string command = "plan simulate --memory device --topo oci-h100";
  const Ended table = seto(command);
  EXPECT_EQ(table.status, 0) << table.text;
  EXPECT_THAT(table.text,
              StartsWith("prediction, no GPU has confirmed it: all_reduce of float in GPU memory, 8 x H100 SXM, joined by "
                         "NVSwitch, 32 blocks on each\n"));
  EXPECT_THAT(table.text, AllOf(HasSubstr("\npredicted      8  one_shot "), HasSubstr("\npredicted     1G  "),
                                HasSubstr("\nNCCL: "), HasSubstr("\nassumed:\n  links: 371 GB/s")));
  EXPECT_EQ(seto(command + " --topo oci-h100").status, 2) << "two hosts";
  const Ended one = seto(command + " --size 64M --algorithm ring --blocks 1 --ranks 4");
  EXPECT_THAT(one.text, AllOf(HasSubstr("4 x H100 SXM"), HasSubstr(", 1 block on each"),
                              HasSubstr("the longest chain of ring, predicted"), Not(HasSubstr("one_shot"))));
  EXPECT_THAT(seto(command + " --size 1M --json").text, StartsWith(R"({"kind":"prediction","memory":"device",)"));
  EXPECT_THAT(seto(command + " --collective barrier").text, HasSubstr("\npredicted      0  "));
  EXPECT_THAT(seto("topo --from oci-h100").text, HasSubstr("mlx5_15"));
}

TEST_F(PlanCommand, says_what_is_wrong_with_a_prediction) {
  const std::string device = "plan simulate --memory device --topo ";
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Ended ended = seto(arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_THAT(ended.text, HasSubstr(why)) << arguments;
  };
  std::ofstream(path("cpu.xml")) << R"(<system version="1"><cpu numaid="0" affinity="f" arch="x86_64"/></system>)";
  refused(device + path("cpu.xml"), "the topology has no GPU, and a call on GPU memory needs two: name a file that has GPUs");
  refused(device + "oci-h100 --size big", "'big' is not a size");
  refused(device + "oci-h100 --algorithm magic", "magic cannot run here");
  refused(device + "oci-h100 --ranks 9", "2 to 8");
  refused(device + "oci-h100 --blocks 133", "1 to 132");
  refused(device + "oci-h100 --size 1M --svg " + path("chart.svg"), "no chart");
  refused("plan simulate --memory tape --topo oci-h100", "tape");
  refused("plan simulate --memory host --topo oci-h100", "--size is required");
  refused("plan simulate --topo oci-h100 --size 1M --blocks 4", "--memory");
  refused("plan simulate --memory host --topo oci-h100 --size 1M --blocks 4", "only a call on device memory has blocks");
  EXPECT_EQ(seto(device + "oci-h101").status, 1) << "neither a file nor a model";
}

}  // namespace
}  // namespace seto::testing

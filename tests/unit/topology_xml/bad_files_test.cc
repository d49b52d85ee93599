#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/topology/xml/topology_file.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

std::string refusal(const std::string& text) {
  const auto graph = read_topology(text);
  return graph.ok() ? "it was read" : std::string(graph.status().text());
}

std::string system_with(const std::string& inside) { return "<system version=\"1\">\n" + inside + "\n</system>\n"; }

std::string cpu_with(const std::string& inside) { return system_with("<cpu numaid=\"0\">" + inside + "</cpu>"); }

struct BadFile {
  const char* name;
  std::string text;
  const char* reason;  // the whole text of the error, or its beginning
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

class BadFiles : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedWithLineAndReason) {
  EXPECT_EQ(refusal(GetParam().text).rfind(GetParam().reason, 0), 0U) << refusal(GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Format, BadFiles,
    ::testing::Values(
        BadFile{"Empty", "", "line 1: there is no element"},
        BadFile{"OnlyAComment", "<!-- nothing -->\n", "line 2: there is no element"},
        BadFile{"NoXml", "hello",
                "line 1: this is not XML; wanted is a topology file: NCCL's, which begins with <system>, or hwloc's"},
        BadFile{"Json", " \n{\"seto_dump\": 1}", "line 2: this is not XML"},
        BadFile{"TextAfterAComment", "<!-- a --> b", "line 1: expected '<', found 'b'"},
        BadFile{"Binary", std::string("\0\1\2", 3), "line 1: this is not XML"},
        BadFile{"Prolog", "<?xml version=\"1.0\"?>\n" + system_with(""), "line 1: an XML prolog: NCCL does not read it"},
        BadFile{"Tab", "<system version=\"1\">\n\t<cpu numaid=\"0\"/></system>", "line 2: a tab: NCCL does not read it"},
        BadFile{"NewlineInATag", "<system version=\"1\">\n<cpu\nnumaid=\"0\"/></system>", "line 2: a newline inside a tag"},
        BadFile{"NewlineInAValue", "<system version=\"1\n\"/>", "line 1: the value of attribute version contains a newline"},
        BadFile{"NotClosed", "<system version=\"1\">\n<cpu numaid=\"0\">", "line 2: <cpu> of line 2 is not closed"},
        BadFile{"WrongEnd", "<system version=\"1\"></cpu>", "line 1: </cpu> closes <system> of line 1"},
        BadFile{"OpenComment", "<!-- hello", "line 1: the comment that begins here has no end"},
        BadFile{"OpenValue", "<system version=\"1", "line 1: the value of attribute version has no end"},
        BadFile{"NoQuote", "<system version=1/>", "line 1: expected =\" after attribute version"},
        BadFile{"Twice", "<system version=\"1\" version=\"1\"/>", "line 1: attribute version of <system> is there twice"},
        BadFile{"TwoRoots", system_with("") + system_with(""), "line 4: there is a second element after the first"},
        BadFile{"Entity", "<system version=\"&one;\"/>", "line 1: unknown entity '&one;"},
        BadFile{"Reference", "<system version=\"&#999;\"/>", "line 1: character reference '&#999;' is not an ASCII character"},
        BadFile{"Declarations", "<!DOCTYPE x [<!ENTITY a \"b\">]><x/>", "line 1: a DOCTYPE with declarations is not read"},
        BadFile{"Text", system_with("hello"), "line 2: text inside <system>"}),
    [](const auto& file) { return file.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Content, BadFiles,
    ::testing::Values(
        BadFile{"Graphs", "<graphs version=\"1\"/>", "line 1: <graphs>: this file holds rings and trees"},
        BadFile{"OtherRoot", "<html/>", "line 1: <html>: is not a topology"},
        BadFile{"NoVersion", "<system/>", "line 1: <system>: version is missing"},
        BadFile{"Version", "<system version=\"3\"/>", "line 1: <system>: version: '3' is not a number from 1 to 2"},
        BadFile{"UnknownElement", system_with("<disk/>"), "line 2: <disk>: is not known inside <system>"},
        BadFile{"UnknownAttribute", system_with("<cpu numa_id=\"0\"/>"),
                "line 2: <cpu>: attribute 'numa_id' is unknown; did you mean numaid"},
        BadFile{"Affinity", system_with("<cpu affinity=\"all\"/>"), "line 2: <cpu>: affinity is not a mask"},
        BadFile{"NodeTwice", system_with("<cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/>"),
                "line 3: <cpu>: numaid 0 of this host is there twice"},
        BadFile{"NoAddress", cpu_with("<pci/>"), "line 2: <pci>: busid is missing"},
        BadFile{"Address", cpu_with("<pci busid=\"0000:00:20.0\"/>"),
                "line 2: <pci>: busid: '0000:00:20.0' is not a PCI address"},
        BadFile{"AddressTwice", cpu_with("<pci busid=\"0000:01:00.0\"/>\n<pci busid=\"0000:01:00.0\"/>"),
                "line 3: <pci>: busid 0000:01:00.0 is there twice: the first is on line 2"},
        BadFile{"Cycle", cpu_with("<pci busid=\"0000:01:00.0\">\n<pci busid=\"0000:01:00.0\"/></pci>"),
                "line 3: <pci>: busid 0000:01:00.0 lies within itself: the tree has a cycle"},
        BadFile{"CycleOfSwitches", cpu_with("<pci busid=\"0000:01:00.0\"><pcilink target=\"0000:01:00.0\"/></pci>"),
                "line 2: <pcilink>: the target is the device itself: a cycle"},
        BadFile{"Class", cpu_with("<pci busid=\"0000:01:00.0\" class=\"0x1000000\"/>"),
                "line 2: <pci>: class: '0x1000000' is not"},
        BadFile{"LinkSpeed", cpu_with("<pci busid=\"0000:01:00.0\" link_speed=\"9 GT/s\"/>"),
                "line 2: <pci>: link_speed: '9 GT/s'"},
        BadFile{"Lanes", cpu_with("<pci busid=\"0000:01:00.0\" link_width=\"64\"/>"), "line 2: <pci>: link_width: 64 lanes"},
        BadFile{"Speed", cpu_with("<nic><net speed=\"99999999999999999999\"/></nic>"),
                "line 2: <net>: speed: '99999999999999999999'"},
        BadFile{"Latency", cpu_with("<nic><net latency=\"nan\"/></nic>"), "line 2: <net>: latency: 'nan' is not a number"},
        BadFile{"LinkCount",
                cpu_with("<pci busid=\"0000:01:00.0\"><gpu><nvlink target=\"0000:02:00.0\" count=\"-1\"/></gpu></pci>"),
                "line 2: <nvlink>: count: '-1' is not a number"},
        BadFile{"SiteOfHost", system_with("<seto_host hash=\"0x1\" site=\"7\"/>"),
                "line 2: <seto_host>: site: '7' is not a number"},
        BadFile{"LinkToItself", system_with("<seto_link kind=\"between\" from=\"0\" to=\"0\" loss=\"0\"/>"),
                "line 2: <seto_link>: from and to are the same site"},
        BadFile{"LinkWithoutValue", system_with("<seto_link kind=\"uplink\"/>"), "line 2: <seto_link>: states no value"},
        BadFile{"LossAboveOne", system_with("<seto_link kind=\"uplink\" loss=\"1.5\"/>"), "line 2: <seto_link>: loss: '1.5'"}),
    [](const auto& file) { return file.param.name; });

TEST(BadFilesOfSize, AreRefused) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_EQ(refusal(deep), "line 1: elements are nested more than 64 deep");
  std::string many = "<system>";
  for (int i = 0; i < 70'000; ++i) many += "<a/>";
  EXPECT_EQ(refusal(many), "line 1: there are more than 65536 elements");
  EXPECT_EQ(refusal("<system version=\"" + std::string(1 << 20, '1') + "\"/>"),
            "line 1: the value of attribute version is too long");
  EXPECT_EQ(refusal(std::string((16u << 20) + 1, ' ')).rfind("line 1: the text has 16777217 bytes", 0), 0U);
}

TEST(BadFilesOfSize, AMegabyteOfGarbageIsRefused) {
  std::mt19937_64 random(testing::chosen_seed());
  std::string garbage(1 << 20, '\0');
  for (char& c : garbage) c = static_cast<char>(random());
  EXPECT_NE(refusal(garbage), "it was read");
  EXPECT_EQ(refusal("<" + garbage).rfind("line ", 0), 0U);
}

// A valid file with random bytes replaced, removed and doubled is read or refused, and what is read can be written and read
// again.
TEST(BadFilesOfSize, AlteredFilesAreReadOrRefusedWithALine) {
  const std::string valid = cpu_with(
      "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n<pci "
      "busid=\"0000:02:00.0\">"
      "<gpu dev=\"0\" sm=\"90\"><nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x068000\"/></gpu></pci></pci>\n"
      "<nic><net name=\"eth0\" speed=\"100000\"/></nic>");
  ASSERT_EQ(refusal(valid), "it was read");
  std::mt19937_64 random(testing::chosen_seed());
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = valid;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const int kind = static_cast<int>(random() % 3);
      if (kind == 0) text[at] = "<>\"'=/ &#0a\n\t\xff"[random() % 15];
      if (kind == 1) text.erase(at, random() % 20);
      if (kind == 2) text.insert(at, text.substr(at, random() % 20));
      if (text.empty()) text = "<";
    }
    const auto graph = read_topology(text);
    if (!graph.ok()) {
      ++refused;
      ASSERT_TRUE(graph.status().text().starts_with("line ")) << graph.status().text();
      continue;
    }
    const auto again = read_topology(write_nccl(graph.value()));
    ASSERT_TRUE(again.ok()) << again.status().text() << "\n" << text;
    ASSERT_TRUE(again.value() == graph.value()) << text;
  }
  EXPECT_GT(refused, 1000);
}

std::string repeated(const std::string& element, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += element;
  return text;
}

TEST(FileLimits, AreWhatASearchCanBear) {
  const auto sites = [](std::size_t count) { return system_with(repeated("<seto_site name=\"\"/>", count)); };
  EXPECT_EQ(refusal(sites(kMostSites)), "it was read");
  EXPECT_EQ(refusal(sites(kMostSites + 1)), "line 2: <seto_site>: one site too many; at most 1024 are read");
  const auto gpus = [](std::size_t count) {
    return cpu_with("<pci busid=\"0000:01:00.0\">" + repeated("<gpu/>", count) + "</pci>");
  };
  EXPECT_EQ(refusal(gpus(kMostGpusOfHost)), "it was read");
  EXPECT_EQ(refusal(gpus(kMostGpusOfHost + 1)), "line 1: <system>: 1025 GPUs of one host; at most 1024 are read");
}

}  // namespace
}  // namespace seto

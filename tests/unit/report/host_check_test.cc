#include "src/report/host_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "src/core/connect/context.h"

namespace seto {
namespace {

namespace files = std::filesystem;
using Level = Finding::Level;

constexpr Load kFour = {4, 4, 2, false};

// A host without problems, for four ranks.
HostFacts healthy() {
  HostFacts facts;
  facts.kernel = "Linux 6.1.0";
  facts.processor = "x86_64";
  facts.online_cores = facts.usable_cores = 8;
  facts.clock_source = "tsc";
  facts.steady_ticks = facts.synchronised = true;
  facts.memory = facts.free_memory = 16ULL << 30;
  facts.locked_limit = 8ULL << 20;
  facts.files_limit = facts.files_hard_limit = 4096;
  facts.has_shm = facts.has_memfd = facts.has_membarrier = true;
  facts.shm_size = facts.shm_free = 8ULL << 30;
  facts.huge_pages = "madvise";
  facts.networks.push_back({"eth0", "ordinary", "10.0.0.1", true, 10'000, 1500});
  facts.chosen = "10.0.0.1";
  facts.receive_buffer = facts.send_buffer = 64ULL << 20;
  facts.backlog = 4096;
  facts.congestion = "cubic";
  facts.congestion_choice = "reno cubic bbr";
  return facts;
}

Finding finding(const std::vector<Finding>& all, const std::string& topic) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& one) { return one.topic == topic; });
  EXPECT_NE(found, all.end()) << topic;
  return found == all.end() ? Finding{} : *found;
}

TEST(Doctor, finds_no_problem_on_a_healthy_host) {
  for (const Finding& one : examine(healthy(), kFour)) {
    EXPECT_EQ(one.level, Level::ok) << one.topic << ": " << one.found << "; " << one.fix;
    EXPECT_TRUE(one.fix.empty()) << one.topic;
    EXPECT_FALSE(one.found.empty()) << one.topic;
  }
}

// One problem at a time: its topic is reported with a fix, and no other topic is.
TEST(Doctor, finds_each_problem_alone) {
  struct Ill {
    const char* topic;
    Level level;
    std::function<void(HostFacts&)> make;
  };
  const std::vector<Ill> all = {
      {"cores", Level::warn, [](HostFacts& host) { host.usable_cores = 3; }},
      {"cpu quota", Level::warn, [](HostFacts& host) { host.quota_cores = 1.5; }},
      {"hyperthreads", Level::warn,
       [](HostFacts& host) {
         host.hyperthreads = true;
         host.usable_cores = 6;
       }},
      {"cpu governor", Level::warn, [](HostFacts& host) { host.governor = "powersave"; }},
      {"clock source", Level::warn, [](HostFacts& host) { host.clock_source = "hpet"; }},
      {"time stamps", Level::warn, [](HostFacts& host) { host.steady_ticks = false; }},
      {"wall clock", Level::warn, [](HostFacts& host) { host.synchronised = false; }},
      {"memory", Level::bad, [](HostFacts& host) { host.free_memory = 100ULL << 20; }},
      {"memory limit", Level::bad, [](HostFacts& host) { host.memory_limit = 128ULL << 20; }},
      {"huge pages", Level::warn, [](HostFacts& host) { host.huge_pages = "never"; }},
      {"open files", Level::bad, [](HostFacts& host) { host.files_limit = 64; }},
      {"open files", Level::bad, [](HostFacts& host) { host.files_limit = host.files_hard_limit = 64; }},
      {"memfd", Level::bad, [](HostFacts& host) { host.has_memfd = false; }},
      {"membarrier", Level::warn, [](HostFacts& host) { host.has_membarrier = false; }},
      {"/dev/shm", Level::warn, [](HostFacts& host) { host.shm_size = 64ULL << 20; }},
      {"reached at", Level::warn, [](HostFacts& host) { host.chosen = "127.0.0.1"; }},
      {"reached at", Level::bad, [](HostFacts& host) { host.network_trouble = "SETO_INTERFACE=ib0 leaves nothing"; }},
      {"tcp buffers", Level::warn, [](HostFacts& host) { host.send_buffer = 4ULL << 20; }},
      {"congestion control", Level::warn, [](HostFacts& host) { host.congestion_choice = "reno cubic"; }},
      {"load", Level::warn, [](HostFacts& host) { host.load = 5; }},
      {"listen backlog", Level::warn, [](HostFacts& host) { host.backlog = 5; }},
  };
  for (const Ill& ill : all) {
    HostFacts facts = healthy();
    ill.make(facts);
    const std::vector<Finding> found = examine(facts, kFour);
    EXPECT_EQ(finding(found, ill.topic).level, ill.level) << ill.topic;
    EXPECT_FALSE(finding(found, ill.topic).fix.empty()) << ill.topic;
    EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const Finding& one) { return one.level != Level::ok; }), 1)
        << ill.topic;
    EXPECT_EQ(count_bad(found), ill.level == Level::bad ? 1 : 0);
  }
}

std::string fix_of_files(const Load& load) {
  HostFacts facts = healthy();
  facts.files_limit = 66;
  return finding(examine(facts, load), "open files").fix;
}

// A process opens more sockets for ranks of other hosts than for ranks of its own host.
TEST(Doctor, counts_the_sockets_of_the_whole_job) {
  EXPECT_EQ(fix_of_files({2, 2, 2, false}), "");
  EXPECT_EQ(fix_of_files({4, 4, 2, false}), "ulimit -n 70: a process needs up to 70 in a job of 4 ranks");
  EXPECT_EQ(fix_of_files({4, 64, 2, false}), "ulimit -n 190: a process needs up to 190 in a job of 64 ranks");
  EXPECT_EQ(fix_of_files({4, 64, 5, false}), "ulimit -n 370: a process needs up to 370 in a job of 64 ranks");
  EXPECT_EQ(fix_of_files({4, 64, 5, true}), "ulimit -n 379: a process needs up to 379 in a job of 64 ranks");
}

TEST(Doctor, takes_the_jobs_size_from_its_launcher) {
  Config config;
  const char* const nothing[] = {nullptr};
  EXPECT_EQ(load_of(config, nothing, 3).ranks, 3);
  EXPECT_EQ(load_of(config, nothing, 0).ranks_here, usable_cores());
  const char* const torchrun[] = {
      "RANK=5", "WORLD_SIZE=48", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", nullptr};
  const Load far = load_of(config, torchrun, 4);
  EXPECT_EQ(far.ranks_here, 4);
  EXPECT_EQ(far.ranks, 48);
  EXPECT_EQ(far.tcp_sockets, 2);
  EXPECT_FALSE(far.only_tcp);
  config.tcp_streams = 4;
  config.transport = Medium::tcp;
  EXPECT_EQ(load_of(config, torchrun, 4).tcp_sockets, 5);
  EXPECT_TRUE(load_of(config, torchrun, 4).only_tcp);
  const char* const broken[] = {"RANK=50", "WORLD_SIZE=48", nullptr};
  EXPECT_EQ(load_of(config, broken, 2).ranks, 2);
}

TEST(Doctor, writes_a_line_for_each_and_the_fix_below) {
  HostFacts facts = healthy();
  facts.has_memfd = false;
  const std::vector<Finding> found = examine(facts, kFour);
  const std::string text = findings_text(found, ReportFormat::text);
  EXPECT_NE(text.find("\nbad   memfd "), std::string::npos) << text;
  EXPECT_NE(text.find(" fix: allow memfd_create"), std::string::npos) << text;
  EXPECT_NE(text.find("ok    interface eth0 "), std::string::npos) << text;
  const std::string json = findings_text(found, ReportFormat::json);
  EXPECT_NE(json.find(R"("bad":1)"), std::string::npos) << json;
}

// ---- facts from files ----

class MadeUpHost final {
 public:
  MadeUpHost() {
    std::string pattern = (files::temp_directory_path() / "seto_host_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~MadeUpHost() { files::remove_all(root_); }
  MadeUpHost(const MadeUpHost&) = delete;
  MadeUpHost& operator=(const MadeUpHost&) = delete;

  void put(const std::string& path, const std::string& text) const {
    files::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  [[nodiscard]] HostFacts facts() const {
    HostFacts facts;
    put_files(facts, root_.string());
    return facts;
  }

 private:
  files::path root_;
};

TEST(HostFacts, takes_the_tightest_limit_above_the_process) {
  const MadeUpHost host;
  host.put("proc/self/cgroup", "0::/job/rank");
  host.put("sys/fs/cgroup/job/rank/cpu.max", "max 100000");
  host.put("sys/fs/cgroup/job/cpu.max", "150000 100000");
  host.put("sys/fs/cgroup/cpu.max", "400000 100000");
  host.put("sys/fs/cgroup/job/rank/memory.max", "max");
  host.put("sys/fs/cgroup/job/memory.max", "1073741824");
  const HostFacts facts = host.facts();
  EXPECT_DOUBLE_EQ(facts.quota_cores, 1.5);
  EXPECT_EQ(facts.memory_limit, 1ULL << 30);
}

TEST(HostFacts, knows_the_first_version_of_control_groups) {
  const MadeUpHost host;
  host.put("proc/self/cgroup", "4:memory:/box\n2:cpu,cpuacct:/box\n0::/");
  host.put("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "250000");
  host.put("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  host.put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  host.put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712");
  const HostFacts facts = host.facts();
  EXPECT_DOUBLE_EQ(facts.quota_cores, 2.5);
  EXPECT_EQ(facts.memory_limit, 0U) << "the largest number means no limit";
}

TEST(HostFacts, reads_the_kernels_files) {
  const MadeUpHost host;
  host.put("proc/loadavg", "1.50 0.70 0.10 2/345 6789");
  host.put("proc/meminfo", "MemTotal:       24000000 kB\nMemAvailable:   12000000 kB\nHugePages_Total:       3");
  host.put("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456");
  host.put("proc/sys/net/ipv4/tcp_available_congestion_control", "reno bbr cubic");
  host.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  host.put("sys/devices/system/cpu/smt/active", "1");
  host.put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  const HostFacts facts = host.facts();
  EXPECT_EQ(facts.memory, 24'000'000ULL << 10);
  EXPECT_EQ(facts.free_memory, 12'000'000ULL << 10);
  EXPECT_EQ(facts.reserved_huge_pages, 3U);
  EXPECT_EQ(facts.receive_buffer, 6'291'456U);
  EXPECT_EQ(facts.congestion_choice, "reno bbr cubic");
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_TRUE(facts.hyperthreads);
  EXPECT_EQ(facts.clock_source, "tsc");
  EXPECT_FALSE(facts.has_shm);
}

TEST(HostFacts, of_missing_files_are_unknown) {
  const HostFacts facts = MadeUpHost().facts();
  EXPECT_EQ(facts.memory, 0U);
  EXPECT_EQ(facts.quota_cores, 0);
  EXPECT_EQ(facts.governor, "");
}

TEST(HostFacts, of_this_machine_are_plausible) {
  const HostFacts facts = facts_of_host({});
  EXPECT_GE(facts.usable_cores, 1);
  EXPECT_GE(facts.online_cores, facts.usable_cores);
  EXPECT_GT(facts.memory, 0U);
  EXPECT_TRUE(facts.has_memfd);
  EXPECT_FALSE(facts.networks.empty());
  EXPECT_GT(facts.files_limit, 0U);
}

}  // namespace
}  // namespace seto

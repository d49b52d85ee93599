#include "src/report/host_check.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "src/base/json_writer.h"
#include "src/base/text.h"
#include "src/bootstrap/providers/environment.h"
#include "src/core/connect/context.h"

namespace seto {
namespace {

using Level = Finding::Level;

// Memory that a rank allocates before it moves large messages, and descriptors that a process opens beside its connections.
constexpr std::uint64_t kMemoryPerRank = 64ULL << 20;
constexpr std::uint64_t kFilesOfProcess = 64;
// a socket for each process of this host, and an eventfd for each of its ranks
constexpr std::uint64_t kFilesPerLocalProcess = 2;
constexpr int kControlChannels = 1;  // one between two processes, beside the streams of their ranks
// 1 Gbit/s with a round trip of 50 ms has 6.25 MB in flight.
constexpr std::uint64_t kFarBuffer = 6ULL << 20;
constexpr std::uint64_t kDockerShm = 64ULL << 20;

std::string amount(std::uint64_t bytes) {
  if (bytes == RLIM_INFINITY) return "unlimited";
  std::array<char, 32> text{};
  const auto value = static_cast<double>(bytes);
  if (bytes >= (1ULL << 30))
    std::snprintf(text.data(), text.size(), "%.1f GiB", value / (1ULL << 30));
  else
    std::snprintf(text.data(), text.size(), "%.1f MiB", value / (1ULL << 20));
  return text.data();
}

std::string count_text(std::uint64_t count) { return count == RLIM_INFINITY ? "unlimited" : std::to_string(count); }

class Checkup final {
 public:
  Checkup(const HostFacts& facts, const Load& load) : facts_(facts), load_(load), ranks_(load.ranks_here) {}

  std::vector<Finding> findings() && {
    cores();
    clocks();
    memory();
    limits();
    shared_memory();
    networks();
    tcp();
    return std::move(findings_);
  }

 private:
  void add(std::string topic, std::string found) {
    findings_.push_back({std::move(topic), Level::ok, std::move(found), "", false});
  }
  // The last finding is a problem: sets its level and its fix.
  void set_problem(Level level, std::string fix) {
    findings_.back().level = level;
    findings_.back().fix = std::move(fix);
  }
  void alike() { findings_.back().same = true; }

  void cores() {
    add("kernel", facts_.kernel + " " + facts_.processor);
    alike();
    add("cores", std::to_string(facts_.usable_cores) + " usable of " + std::to_string(facts_.online_cores) + ", for " +
                     std::to_string(ranks_) + (ranks_ == 1 ? " rank" : " ranks"));
    alike();
    if (ranks_ > facts_.usable_cores)
      set_problem(Level::warn,
                  facts_.usable_cores < facts_.online_cores
                      ? "widen the affinity of the process (taskset, --cpus-per-task, cpuset), or run fewer ranks here"
                      : "run fewer ranks here: ranks that outnumber cores give up their core in every wait");
    add("cpu quota", facts_.quota_cores == 0 ? "none" : std::to_string(facts_.quota_cores).substr(0, 6) + " cores");
    if (facts_.quota_cores > 0 && facts_.quota_cores < std::min(ranks_, facts_.usable_cores))
      set_problem(Level::warn,
                  "raise the limit of the control group (docker --cpus, Kubernetes limits.cpu): its ranks are suspended during "
                  "operations, and all other ranks wait for them");
    std::array<char, 16> load{};
    std::snprintf(load.data(), load.size(), "%.2f", facts_.load);
    add("load", facts_.load < 0 ? "not known"
                                : load.data() + (" on " + std::to_string(facts_.online_cores)) + " cores over the last minute");
    if (facts_.load > facts_.online_cores / 2.0)
      set_problem(Level::warn,
                  "see what else runs here (top): ranks that share cores with it are slow, and measurements are unreliable");
    add("hyperthreads", facts_.hyperthreads ? "on" : "off, or none");
    if (facts_.hyperthreads && ranks_ > facts_.usable_cores / 2)
      set_problem(Level::warn, "run at most one rank for each physical core: two ranks on one core share its execution units");
    add("cpu governor", facts_.governor.empty() ? "none (the host or a hypervisor decides)" : facts_.governor);
    alike();
    if (facts_.governor == "powersave" || facts_.governor == "conservative" || facts_.governor == "ondemand")
      set_problem(Level::warn, "cpupower frequency-set -g performance: otherwise the core clock drops in short waits");
  }

  void clocks() {
    add("clock source", facts_.clock_source.empty() ? "not known" : facts_.clock_source);
    alike();
    if (facts_.clock_source == "hpet" || facts_.clock_source == "acpi_pm" || facts_.clock_source == "jiffies")
      set_problem(Level::warn,
                  "boot with clocksource=tsc if the firmware allows it: otherwise every deadline check takes a microsecond");
    add("time stamps", facts_.steady_ticks ? "steady" : "not known to be steady");
    if (!facts_.steady_ticks)
      set_problem(Level::warn, "nothing to do on this machine: times of the flight recorder may be wrong");
    add("wall clock", facts_.synchronised ? "synchronised" : "not synchronised");
    if (!facts_.synchronised)
      set_problem(Level::warn,
                  "start chronyd or systemd-timesyncd: dumps and logs of several hosts are compared by their clocks");
  }

  void memory() {
    const std::uint64_t wanted = kMemoryPerRank * static_cast<std::uint64_t>(ranks_);
    add("memory", amount(facts_.free_memory) + " free of " + amount(facts_.memory));
    if (facts_.free_memory > 0 && facts_.free_memory < wanted)
      set_problem(Level::bad, "free memory or run fewer ranks: " + amount(wanted) + " is the least that the ranks need");
    add("memory limit", facts_.memory_limit == 0 ? "none" : amount(facts_.memory_limit));
    if (facts_.memory_limit > 0 && facts_.memory_limit < wanted)
      set_problem(Level::bad,
                  "raise the limit of the control group (docker --memory, Kubernetes limits.memory): slots count towards it");
    add("huge pages", (facts_.huge_pages.empty() ? "not known" : facts_.huge_pages) + ", of shared memory " +
                          (facts_.shared_huge_pages.empty() ? "not known" : facts_.shared_huge_pages) + ", " +
                          std::to_string(facts_.reserved_huge_pages) + " reserved");
    alike();
    if (facts_.huge_pages == "never")
      set_problem(Level::warn,
                  "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: large buffers of setoMemAlloc use huge pages");
  }

  // For a process with one rank. A process with several ranks needs sockets to TCP ranks for each of them.
  [[nodiscard]] std::uint64_t wanted_files() const {
    const int near = load_.only_tcp ? 0 : ranks_ - 1;
    const int far = std::max(0, load_.ranks - 1 - near);
    return kFilesOfProcess + kFilesPerLocalProcess * static_cast<std::uint64_t>(near) +
           static_cast<std::uint64_t>(load_.tcp_sockets) * static_cast<std::uint64_t>(far);
  }

  void limits() {
    add("locked memory", amount(facts_.locked_limit));
    alike();
    const std::uint64_t wanted = wanted_files();
    add("open files", count_text(facts_.files_limit) + ", at most " + count_text(facts_.files_hard_limit));
    alike();
    const std::string what = std::to_string(wanted) + " in a job of " + std::to_string(load_.ranks) + " ranks";
    if (facts_.files_hard_limit < wanted)
      set_problem(Level::bad,
                  "raise nofile in limits.conf, LimitNOFILE of the service, or docker --ulimit: a process needs up to " + what);
    else if (facts_.files_limit < wanted)
      set_problem(Level::bad, "ulimit -n " + std::to_string(wanted) + ": a process needs up to " + what);
  }

  void shared_memory() {
    add("memfd", facts_.has_memfd ? "works" : "refused");
    if (!facts_.has_memfd)
      set_problem(Level::bad, "allow memfd_create in the sandbox (seccomp): ranks of a host share memory through it");
    add("membarrier", facts_.has_membarrier ? "works" : "refused");
    if (!facts_.has_membarrier)
      set_problem(Level::warn,
                  "allow membarrier in the sandbox (seccomp), or Linux 4.16: without it a sleeping rank may wake 5 ms late");
    add("/dev/shm", facts_.has_shm ? amount(facts_.shm_free) + " free of " + amount(facts_.shm_size) : "none");
    if (!facts_.has_shm || facts_.shm_size <= kDockerShm)
      set_problem(Level::warn, "docker --shm-size=1g: Seto does not use it, but data loaders and other libraries do");
  }

  void networks() {
    for (const HostFacts::Network& one : facts_.networks) {
      std::string found = one.kind + (one.up ? "" : ", down") + ", " + (one.addresses.empty() ? "no address" : one.addresses);
      if (one.speed_mbit > 0) found += ", " + std::to_string(one.speed_mbit) + " Mbit/s";
      if (one.mtu > 0) found += ", MTU " + std::to_string(one.mtu);
      add("interface " + one.name, found);
    }
    add("reached at", facts_.network_trouble.empty() ? facts_.chosen : facts_.network_trouble);
    if (!facts_.network_trouble.empty())
      set_problem(Level::bad, "see SETO_INTERFACE");
    else if (facts_.chosen.empty() || facts_.chosen.starts_with("127.") || facts_.chosen == "::1")
      set_problem(Level::warn, "bring up a network: other machines cannot reach this one");
  }

  void tcp() {
    add("tcp buffers", "receive up to " + amount(facts_.receive_buffer) + ", send up to " + amount(facts_.send_buffer));
    alike();
    if (std::min(facts_.receive_buffer, facts_.send_buffer) < kFarBuffer)
      set_problem(Level::warn,
                  "between sites: sysctl -w net.ipv4.tcp_rmem='4096 131072 67108864' net.ipv4.tcp_wmem='4096 65536 67108864'");
    add("congestion control", facts_.congestion + " of " + facts_.congestion_choice);
    alike();
    if ((" " + facts_.congestion_choice + " ").find(" bbr ") == std::string::npos)
      set_problem(Level::warn, "between sites: modprobe tcp_bbr; cubic takes every lost packet of a long link for congestion");
    add("listen backlog", std::to_string(facts_.backlog));
    if (facts_.backlog > 0 && facts_.backlog < 128)
      set_problem(Level::warn,
                  "sysctl -w net.core.somaxconn=4096: when many ranks connect at once, some are refused and try again");
  }

  const HostFacts& facts_;
  const Load& load_;
  const int ranks_;
  std::vector<Finding> findings_;
};

std::string as_text(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& one : findings) width = std::max(width, one.topic.size());
  std::string text;
  for (const Finding& one : findings) {
    const std::string_view level = name_of(one.level);
    text.append(level)
        .append(6 - level.size(), ' ')
        .append(one.topic)
        .append(width - one.topic.size() + 2, ' ')
        .append(one.found);
    if (!one.fix.empty()) text.append("\n").append(8 + width, ' ').append("fix: ").append(one.fix);
    text += '\n';
  }
  return text;
}

std::string as_json(const std::vector<Finding>& findings) {
  JsonWriter json;
  json.open('{').key("seto_doctor").number(std::uint64_t{1}).key("bad").number(static_cast<std::uint64_t>(count_bad(findings)));
  json.key("checks").open('[');
  for (const Finding& one : findings) {
    json.open('{').key("topic").value(one.topic).key("level").value(name_of(one.level)).key("found").value(one.found);
    if (!one.fix.empty()) json.key("fix").value(one.fix);
    json.key("same").number(std::uint64_t{one.same ? 1U : 0U}).close('}');
  }
  json.close(']').close('}');
  return std::move(json).text();
}

}  // namespace

std::string_view name_of(Finding::Level level) {
  static constexpr std::string_view kNames[] = {"ok", "warn", "bad"};
  return kNames[static_cast<std::size_t>(level)];
}

Load load_of(const Config& config, const char* const* environment, int ranks_here) {
  Load load;
  load.ranks_here = ranks_here == 0 ? usable_cores() : ranks_here;
  const Result<Launch> launch = launch_of(config, environment);
  load.ranks = std::max(load.ranks_here, launch.ok() ? launch.value().ranks : 1);
  load.tcp_sockets = kControlChannels + (config.tcp_streams == kAutomatic ? 1 : static_cast<int>(config.tcp_streams));
  load.only_tcp = config.transport == Medium::tcp;
  return load;
}

std::vector<Finding> examine(const HostFacts& facts, const Load& load) { return Checkup(facts, load).findings(); }

int count_bad(const std::vector<Finding>& findings) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [](const Finding& one) { return one.level == Level::bad; }));
}

std::string findings_text(const std::vector<Finding>& findings, ReportFormat format) {
  return format == ReportFormat::text ? as_text(findings) : as_json(findings);
}

}  // namespace seto

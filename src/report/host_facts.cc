#include "src/report/host_facts.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "src/base/fd.h"
#include "src/base/text.h"
#include "src/core/connect/context.h"
#include "src/net/interfaces.h"

namespace seto {
namespace {

constexpr const char* kCpuFolder = "/sys/devices/system/cpu/";

// The first line of a file; empty if there is no such file.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\n')) line.pop_back();
  return line;
}

std::uint64_t number_of(const std::string& path) { return parse_uint(line_of(path)).value_or(0); }

// The last number in "4096 131072 6291456".
std::uint64_t last_number(const std::string& line) {
  const std::size_t at = line.find_last_of(" \t");
  return parse_uint(at == std::string::npos ? line : line.substr(at + 1)).value_or(0);
}

std::uint64_t smaller_limit(std::uint64_t one, std::uint64_t other) {
  return one == 0 ? other : other == 0 ? one : std::min(one, other);
}

// The control group of this process, by controller ("" for version 2).
std::string group_of(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    for (std::string name; std::getline(names, name, ',');)
      if (name == controller) return line.substr(second + 1);
    if (controller.empty() && second == first + 1) return line.substr(second + 1);
  }
  return {};
}

// Reads a limit from the group and from all groups above it: the lowest one applies. `read` returns 0 for no limit.
template <class Read>
void walk_up(const std::string& top, std::string group, const Read& read) {
  for (;;) {
    read(top + group);
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return;
    group.resize(slash);
  }
}

void put_group_limits(HostFacts& facts, const std::string& root) {
  const auto quota = [&](double limit, double period) {
    if (limit <= 0 || period <= 0) return;
    const double cores = limit / period;
    facts.quota_cores = facts.quota_cores == 0 ? cores : std::min(facts.quota_cores, cores);
  };
  const auto memory = [&](std::uint64_t limit) {
    // Version 1 reports "no limit" as the largest number of pages.
    if (limit > 0 && limit < (std::uint64_t{1} << 60)) facts.memory_limit = smaller_limit(facts.memory_limit, limit);
  };
  walk_up(root + "/sys/fs/cgroup", group_of(root, ""), [&](const std::string& at) {
    double limit = 0;
    double period = 0;
    std::istringstream(line_of(at + "/cpu.max")) >> limit >> period;  // "max 100000" reads as no limit
    quota(limit, period);
    memory(number_of(at + "/memory.max"));
  });
  walk_up(root + "/sys/fs/cgroup/cpu", group_of(root, "cpu"), [&](const std::string& at) {
    quota(static_cast<double>(number_of(at + "/cpu.cfs_quota_us")), static_cast<double>(number_of(at + "/cpu.cfs_period_us")));
  });
  walk_up(root + "/sys/fs/cgroup/memory", group_of(root, "memory"),
          [&](const std::string& at) { memory(number_of(at + "/memory.limit_in_bytes")); });
}

void put_memory(HostFacts& facts, const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    words >> name >> kibibytes;
    if (name == "MemTotal:") facts.memory = kibibytes << 10;
    if (name == "MemAvailable:") facts.free_memory = kibibytes << 10;
    if (name == "HugePages_Total:") facts.reserved_huge_pages = kibibytes;
  }
}

bool ticks_are_steady(const std::string& root) {
#if defined(__x86_64__)
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags"))
      return line.find(" constant_tsc") != std::string::npos && line.find(" nonstop_tsc") != std::string::npos;
  return false;
#else
  (void)root;
  return true;
#endif
}

void put_networks(HostFacts& facts, const Config& config) {
  const auto trouble = [&](const Status& status) { facts.network_trouble = status.text(); };
  const Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return trouble(all.status());
  for (const Interface& one : all.value()) {
    HostFacts::Network network;
    network.name = one.name;
    network.kind = name_of(one.kind);
    network.up = one.up;
    network.speed_mbit = one.speed_mbit;
    network.mtu = number_of("/sys/class/net/" + one.name + "/mtu");
    for (const SocketAddress& address : one.addresses) {
      if (!network.addresses.empty()) network.addresses += ", ";
      network.addresses += host_text(address);
    }
    facts.networks.push_back(std::move(network));
  }
  const Result<InterfaceFilter> filter = InterfaceFilter::parse(config.interface);
  if (!filter.ok()) return trouble(filter.status());
  const Result<std::vector<SocketAddress>> chosen = candidates(all.value(), filter.value());
  if (!chosen.ok()) return trouble(chosen.status());
  for (const SocketAddress& address : chosen.value()) facts.chosen += (facts.chosen.empty() ? "" : ", ") + host_text(address);
}

void put_limits(HostFacts& facts) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.locked_limit = limit.rlim_cur;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.files_limit = limit.rlim_cur;
    facts.files_hard_limit = limit.rlim_max;
  }
}

void put_kernel(HostFacts& facts) {
  utsname names{};
  (void)uname(&names);
  facts.kernel = std::string(names.sysname) + " " + names.release;
  facts.processor = names.machine;
  facts.online_cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  facts.usable_cores = usable_cores();
  facts.has_memfd = Fd(memfd_create("seto", MFD_CLOEXEC)).valid();
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  facts.has_membarrier = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  timex clock{};
  const int state = adjtimex(&clock);
  facts.synchronised = state >= 0 && state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
}

}  // namespace

std::string chosen_word(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? line : line.substr(open + 1, close - open - 1);
}

void put_files(HostFacts& facts, const std::string& root) {
  const std::string cpu = root + kCpuFolder;
  facts.hyperthreads = line_of(cpu + "smt/active") == "1";
  facts.governor = line_of(cpu + "cpu0/cpufreq/scaling_governor");
  facts.clock_source = line_of(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.steady_ticks = ticks_are_steady(root);
  const std::string huge = root + "/sys/kernel/mm/transparent_hugepage/";
  facts.huge_pages = chosen_word(line_of(huge + "enabled"));
  facts.shared_huge_pages = chosen_word(line_of(huge + "shmem_enabled"));
  put_memory(facts, root);
  if (double load = 0; std::istringstream(line_of(root + "/proc/loadavg")) >> load) facts.load = load;
  put_group_limits(facts, root);
  const std::string ipv4 = root + "/proc/sys/net/ipv4/";
  facts.receive_buffer = last_number(line_of(ipv4 + "tcp_rmem"));
  facts.send_buffer = last_number(line_of(ipv4 + "tcp_wmem"));
  facts.congestion = line_of(ipv4 + "tcp_congestion_control");
  facts.congestion_choice = line_of(ipv4 + "tcp_available_congestion_control");
  facts.backlog = number_of(root + "/proc/sys/net/core/somaxconn");
  struct statvfs shm {};
  facts.has_shm = statvfs((root + "/dev/shm").c_str(), &shm) == 0;
  if (facts.has_shm) {
    facts.shm_size = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    facts.shm_free = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
}

HostFacts facts_of_host(const Config& config) {
  HostFacts facts;
  put_kernel(facts);
  put_limits(facts);
  put_files(facts, "");
  put_networks(facts, config);
  return facts;
}

}  // namespace seto

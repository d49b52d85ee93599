#include "src/core/choice/kept_constants.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/core/choice/boundaries.h"

namespace seto {
namespace {

constexpr std::string_view kFirstLine =
    "# Constants of choice that jobs measured on this machine; seto info calibration shows them.\n";
constexpr std::string_view kLastLine = "end\n";  // a file without it was cut short
constexpr std::string_view kFileType = ".txt";
// The one follows from other constants, and the kernel says the other at once, so no file contains them.
constexpr std::string_view kNotKept[] = {"node.long_message_kilobytes", "node.last_level_kilobytes"};
constexpr std::size_t kLongestKeptFile = 4096;
constexpr int kMostJobs = 1'000'000;

// The beginning of a file: the kernel makes the rest of /proc/cpuinfo, which takes milliseconds on many cores, only for a reader
// that goes on.
Result<std::string> beginning_of(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_failure(Code::unavailable, "%s cannot be opened", path.c_str());
  std::string text(kLongestKeptFile + 1, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) return system_failure(Code::unavailable, "%s cannot be read", path.c_str());
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string processor_name(const std::string& machine) {
  const Result<std::string> facts = beginning_of("/proc/cpuinfo");
  if (!facts.ok()) return machine;
  for (const std::string_view key : {"model name", "Processor", "cpu model"}) {
    const std::size_t line = facts.value().find(key);
    if (line == std::string::npos) continue;
    const std::size_t colon = facts.value().find(": ", line);
    const std::size_t end = facts.value().find('\n', line);
    if (colon < end && end != std::string::npos) return plain_ascii(facts.value().substr(colon + 2, end - colon - 2));
  }
  return machine;
}

#if defined(__has_feature)
#define SETO_HAS_FEATURE(name) __has_feature(name)
#else
#define SETO_HAS_FEATURE(name) 0
#endif

// The number is that of the way of measuring: figures of another way are not compared with those of this one.
std::string build_name() {
#if defined(__SANITIZE_ADDRESS__) || SETO_HAS_FEATURE(address_sanitizer)
  return "2-address";
#elif defined(__SANITIZE_THREAD__) || SETO_HAS_FEATURE(thread_sanitizer)
  return "2-thread";
#elif defined(NDEBUG)
  return "2";
#else
  return "2-debug";
#endif
}

// Takes `name value` from the beginning of the text.
Result<std::string> take_line(std::string_view& text, std::string_view name) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name) || text.size() <= name.size() || text[name.size()] != ' ')
    return failure(Code::invalid_argument, "the line '%s' is missing", std::string(name).c_str());
  std::string value(text.substr(name.size() + 1, end - name.size() - 1));
  text.remove_prefix(end + 1);
  return value;
}

// The machine that a file names; an empty one if it names none.
MeasuredMachine machine_in(std::string_view text) {
  text.remove_prefix(std::min(text.size(), kFirstLine.size()));
  MeasuredMachine machine;
  std::string cores, ranks;
  const std::pair<std::string_view, std::string*> lines[] = {{"processor", &machine.processor},
                                                             {"kernel", &machine.kernel},
                                                             {"cores", &cores},
                                                             {"ranks_a_core", &ranks},
                                                             {"build", &machine.build}};
  for (const auto& [name, value] : lines) {
    Result<std::string> taken = take_line(text, name);
    if (!taken.ok()) return {};
    *value = std::move(taken).value();
  }
  machine.cores = std::atoi(cores.c_str());
  machine.ranks_a_core = std::atof(ranks.c_str());
  return machine;
}

Status write_whole(const std::string& path, const std::string& text) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return system_failure(Code::unavailable, "%s cannot be made", path.c_str());
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_failure(Code::unavailable, "%s cannot be written", path.c_str());
  return {};
}

}  // namespace

MeasuredMachine MeasuredMachine::here(int cores, double ranks_a_core) {
  utsname names{};
  (void)uname(&names);
  return {processor_name(names.machine), plain_ascii(names.release), cores, ranks_a_core, build_name()};
}

std::string MeasuredMachine::text() const {
  char ranks[32];
  std::snprintf(ranks, sizeof ranks, "%.3g", ranks_a_core);
  return "processor " + processor + "\nkernel " + kernel + "\ncores " + std::to_string(cores) + "\nranks_a_core " + ranks +
         "\nbuild " + build + "\n";
}

std::string MeasuredMachine::file_name() const {
  std::string name;
  for (const char character : text()) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '.';
    if (is_plain || (!name.empty() && name.back() != '-')) name += is_plain ? character : '-';
  }
  constexpr std::size_t kLongestName = 200;
  return name.substr(0, std::min(name.size() - 1, kLongestName)).append(kFileType);
}

void KeptConstants::take(const TierCost& measured) {
  if (jobs == 0) node = measured;
  node.latency_seconds = std::min(node.latency_seconds, measured.latency_seconds);
  node.bytes_per_second = std::max(node.bytes_per_second, measured.bytes_per_second);
  node.message_seconds = std::min({node.message_seconds, measured.message_seconds, node.latency_seconds / 2});
  // The size belongs to the rate: where other programs slow short passes, a cache seems to be larger than it is.
  if (measured.cached_bytes_per_second > node.cached_bytes_per_second) {
    node.cached_bytes_per_second = measured.cached_bytes_per_second;
    node.cached_bytes = measured.cached_bytes;
  }
  node.long_message_bytes = long_message_bytes_of(node);
  jobs = std::min(jobs + 1, kMostJobs);
}

std::string kept_text(const MeasuredMachine& machine, const KeptConstants& constants) {
  CostModel costs;
  costs.node = constants.node;
  std::string text = std::string(kFirstLine) + machine.text() + "jobs " + std::to_string(constants.jobs) + "\n";
  const std::string all = costs_text(costs);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\n', begin) + 1;
    const std::string line = all.substr(begin, end - begin);
    const bool is_kept = std::none_of(std::begin(kNotKept), std::end(kNotKept), [&](auto key) { return line.starts_with(key); });
    if (line.starts_with("node.") && is_kept) text += line;
    begin = end;
  }
  return text + std::string(kLastLine);
}

Result<KeptConstants> parse_kept(std::string_view text, const MeasuredMachine& machine) {
  if (text.size() > kLongestKeptFile) return failure(Code::invalid_argument, "it is longer than 4 KiB");
  if (!text.starts_with(kFirstLine)) return failure(Code::invalid_argument, "it does not begin like a file of constants");
  if (!text.ends_with(kLastLine)) return failure(Code::invalid_argument, "it is cut short");
  text.remove_prefix(kFirstLine.size());
  text.remove_suffix(kLastLine.size());
  const std::string wanted = machine.text();
  if (!text.starts_with(wanted)) return failure(Code::invalid_argument, "it is of another machine or build");
  text.remove_prefix(wanted.size());
  SETO_ASSIGN(const std::string jobs, take_line(text, "jobs"));
  const std::optional<std::uint64_t> count = parse_uint(jobs);
  if (!count || *count == 0 || *count > kMostJobs) return failure(Code::invalid_argument, "'jobs' is not a number of jobs");
  SETO_ASSIGN(const CostModel costs, parse_costs(text, CostSource::measured));
  CostModel others = costs;
  others.node = CostModel().node;
  others.source = CostSource::shipped;
  if (others != CostModel()) return failure(Code::invalid_argument, "it has constants of other links than a node's");
  KeptConstants kept{costs.node, static_cast<int>(*count)};
  kept.node.long_message_bytes = long_message_bytes_of(kept.node);
  return kept;
}

KeptFiles KeptFiles::of_user() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return KeptFiles(std::string(cache) + "/seto");
  const char* const home = std::getenv("HOME");
  return KeptFiles(home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/seto" : std::string());
}

std::string KeptFiles::path_of(const MeasuredMachine& machine) const { return folder_ + "/" + machine.file_name(); }

std::optional<KeptConstants> KeptFiles::read(const MeasuredMachine& machine) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(machine);
  Result<std::string> text = beginning_of(path);
  const bool is_absent = !text.ok() && access(path.c_str(), F_OK) != 0;
  if (is_absent) return std::nullopt;
  Result<KeptConstants> constants = text.ok() ? parse_kept(text.value(), machine) : Result<KeptConstants>(text.status());
  if (constants.ok()) return constants.value();
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true))
    SETO_LOG(warn, "the constants of this machine in %s are not used: %s; the links are measured anew", path.c_str(),
             std::string(constants.status().text()).c_str());
  return std::nullopt;
}

std::vector<KeptFiles::Listed> KeptFiles::all() const {
  std::vector<Listed> found;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(folder_, none), end; !none && entry != end; entry.increment(none)) {
    if (entry->path().extension() != kFileType) continue;
    Listed& one = found.emplace_back(Listed{entry->path().filename(), {}, KeptConstants()});
    const Result<std::string> text = beginning_of(entry->path());
    if (text.ok()) one.machine = machine_in(text.value());
    one.constants = text.ok() ? parse_kept(text.value(), one.machine) : Result<KeptConstants>(text.status());
  }
  std::sort(found.begin(), found.end(), [](const Listed& left, const Listed& right) { return left.file < right.file; });
  return found;
}

Status KeptFiles::write(const MeasuredMachine& machine, const KeptConstants& constants) const {
  if (folder_.empty()) return failure(Code::unavailable, "neither XDG_CACHE_HOME nor HOME names a folder");
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return failure(Code::unavailable, "%s cannot be made: %s", folder_.c_str(), error.message().c_str());
  const std::string path = path_of(machine);
  static std::atomic<unsigned> count{0};
  const std::string fresh = path + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  Status written = write_whole(fresh, kept_text(machine, constants));
  if (written.ok() && rename(fresh.c_str(), path.c_str()) != 0)
    written = system_failure(Code::unavailable, "%s cannot be replaced", path.c_str());
  if (!written.ok()) (void)unlink(fresh.c_str());
  return written;
}

namespace {

struct Remembered {
  std::mutex mutex;
  std::map<std::string, KeptConstants> of_machine;  // by the text of the machine
};

// It is never destroyed: threads may make communicators while the program ends.
Remembered& remembered() {
  static auto* const all = new Remembered;
  return *all;
}

}  // namespace

std::optional<KeptConstants> remembered_constants(const MeasuredMachine& machine) {
  Remembered& all = remembered();
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_machine.find(machine.text());
  return found == all.of_machine.end() ? std::nullopt : std::optional(found->second);
}

void remember_constants(const MeasuredMachine& machine, const KeptConstants& constants) {
  Remembered& all = remembered();
  const std::lock_guard lock(all.mutex);
  all.of_machine[machine.text()] = constants;
}

}  // namespace seto

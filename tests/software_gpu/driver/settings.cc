#include "tests/software_gpu/driver/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>

namespace seto::software_gpu::driver {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text) {
  std::fprintf(stderr, "software GPU: %s: '%s' is not understood\n", name.c_str(), text.c_str());
  std::abort();
}

constexpr std::string_view kPrefix = "SOFTWARE_GPU_";
constexpr std::array<std::string_view, 22> kNames{
    "GLOBAL_RACES",  "QUEUES",     "COUNT",        "MULTIPROCESSORS", "MEMORY",       "SEED",        "STEP_BUDGET",    "WEAK",
    "VERSION",       "CAPABILITY", "WAIT_SECONDS", "PEERS",           "COMPUTE_MODE", "ERRORS",      "MULTI_INSTANCE", "DELAYS",
    "MAPPING_WAITS", "DMA_BUF",    "WRITE_ORDER",  "FLUSH_OPTIONS",   "MULTICAST",    "MEMORY_FILES"};

void refuse_unknown_names() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!text.starts_with(kPrefix)) continue;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::find(kNames.begin(), kNames.end(), name.substr(kPrefix.size())) == kNames.end())
      refuse(std::string(name), std::string(text));
  }
}

std::string text_of(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

std::uint64_t number(const std::string& name, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(name, text);
  return value;
}

template <class T>
void read(const char* name, T& value) {
  const char* const text = std::getenv(name);
  if (text != nullptr) value = static_cast<T>(number(name, text));
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "all", "none", or pairs "0-1,2-3" that reach each other.
std::vector<std::uint64_t> peers_of(const std::string& text, std::uint32_t gpus) {
  std::vector<std::uint64_t> peers(gpus);
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
    peers[gpu] = text == "all" ? (std::uint64_t{1} << gpus) - 1 : std::uint64_t{1} << gpu;
  if (text == "all" || text == "none") return peers;
  for (const std::string& pair : parts_of(text, ',')) {
    const std::vector<std::string> ends = parts_of(pair, '-');
    if (ends.size() != 2) refuse("SOFTWARE_GPU_PEERS", text);
    const std::uint64_t one = number("SOFTWARE_GPU_PEERS", ends[0]), other = number("SOFTWARE_GPU_PEERS", ends[1]);
    if (one >= gpus || other >= gpus) refuse("SOFTWARE_GPU_PEERS", text);
    peers[one] |= std::uint64_t{1} << other;
    peers[other] |= std::uint64_t{1} << one;
  }
  return peers;
}

// "exclusive:/tmp/x": processes that name the same folder exclude each other; with "exclusive" the GPUs only say that they do.
void take_compute_mode(Settings& settings, const std::string& text) {
  static const std::string kExclusive = "exclusive";
  if (text == "default") return;
  settings.compute_mode = text == "prohibited" ? 2 : 3;
  if (text == "prohibited" || text == kExclusive) return;
  if (!text.starts_with(kExclusive + ":")) refuse("SOFTWARE_GPU_COMPUTE_MODE", text);
  settings.exclusive_folder = text.substr(kExclusive.size() + 1);
}

// Slices of a GPU do not reach each other's memory, nor that of other GPUs.
void separate_slices(std::vector<std::uint64_t>& peers, std::uint32_t slices) {
  const std::uint64_t all_slices = (std::uint64_t{1} << slices) - 1;
  for (std::uint32_t gpu = 0; gpu < peers.size(); ++gpu) peers[gpu] &= gpu < slices ? std::uint64_t{1} << gpu : ~all_slices;
}

bool multicast_of(const std::string& text) {
  if (text == "1") return true;
  if (text != "0" && text != "absent") refuse("SOFTWARE_GPU_MULTICAST", text);
  return false;
}

// "cuMemUnmap:300,cuMemMap:5"
std::map<std::string, std::uint32_t> delays_of(const std::string& text) {
  std::map<std::string, std::uint32_t> delays;
  for (const std::string& one : parts_of(text, ',')) {
    const std::vector<std::string> fields = parts_of(one, ':');
    if (fields.size() != 2) refuse("SOFTWARE_GPU_DELAYS", text);
    delays[fields[0]] = static_cast<std::uint32_t>(number("SOFTWARE_GPU_DELAYS", fields[1]));
  }
  return delays;
}

}  // namespace

std::multimap<std::string, InjectedError> parse_errors(const std::string& text) {
  static const std::string kName = "SOFTWARE_GPU_ERRORS";
  std::multimap<std::string, InjectedError> errors;
  for (const std::string& one : parts_of(text, ',')) {
    const std::vector<std::string> fields = parts_of(one, ':');
    if (fields.size() < 2 || fields.size() > 3) refuse(kName, text);
    InjectedError error{.code = static_cast<cuda::DriverCode>(number(kName, fields[1]))};
    if (fields.size() == 3) {
      const std::size_t dash = fields[2].find('-');
      error.first = number(kName, fields[2].substr(0, dash));
      error.last = error.first;
      if (dash != std::string::npos)
        error.last =
            dash + 1 == fields[2].size() ? std::numeric_limits<std::uint64_t>::max() : number(kName, fields[2].substr(dash + 1));
    }
    errors.emplace(fields[0], error);
  }
  return errors;
}

Settings Settings::of_environment() {
  refuse_unknown_names();
  Settings settings;
  read("SOFTWARE_GPU_COUNT", settings.gpus);
  if (settings.gpus > 32) refuse("SOFTWARE_GPU_COUNT", std::to_string(settings.gpus));
  read("SOFTWARE_GPU_MULTIPROCESSORS", settings.multiprocessors);
  read("SOFTWARE_GPU_QUEUES", settings.queues);
  if (settings.queues == 0) refuse("SOFTWARE_GPU_QUEUES", "0");
  read("SOFTWARE_GPU_MEMORY", settings.memory);
  read("SOFTWARE_GPU_SEED", settings.seed);
  read("SOFTWARE_GPU_STEP_BUDGET", settings.step_budget);
  read("SOFTWARE_GPU_WEAK", settings.weak);
  read("SOFTWARE_GPU_GLOBAL_RACES", settings.global_races);
  read("SOFTWARE_GPU_VERSION", settings.version);
  read("SOFTWARE_GPU_CAPABILITY", settings.capability);
  read("SOFTWARE_GPU_MULTI_INSTANCE", settings.multi_instance);
  read("SOFTWARE_GPU_WAIT_SECONDS", settings.wait_seconds);
  read("CUDA_LAUNCH_BLOCKING", settings.launch_blocking);
  take_compute_mode(settings, text_of("SOFTWARE_GPU_COMPUTE_MODE", "default"));
  settings.peers = peers_of(text_of("SOFTWARE_GPU_PEERS", "all"), settings.gpus);
  if (settings.multi_instance > settings.gpus) refuse("SOFTWARE_GPU_MULTI_INSTANCE", std::to_string(settings.multi_instance));
  separate_slices(settings.peers, settings.multi_instance);
  settings.errors = parse_errors(text_of("SOFTWARE_GPU_ERRORS", ""));
  settings.delays = delays_of(text_of("SOFTWARE_GPU_DELAYS", ""));
  read("SOFTWARE_GPU_MAPPING_WAITS", settings.mapping_waits);
  settings.multicast = multicast_of(text_of("SOFTWARE_GPU_MULTICAST", "1"));
  read("SOFTWARE_GPU_DMA_BUF", settings.dma_buf);
  read("SOFTWARE_GPU_MEMORY_FILES", settings.memory_files);
  read("SOFTWARE_GPU_WRITE_ORDER", settings.write_order);
  read("SOFTWARE_GPU_FLUSH_OPTIONS", settings.flush_options);
  return settings;
}

}  // namespace seto::software_gpu::driver

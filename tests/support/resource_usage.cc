#include "tests/support/resource_usage.h"

#include <algorithm>
#include <cstdlib>

namespace seto::testing {
namespace {

// The number before `unit`: 14 of "Used 14 registers, used 0 barriers" and " registers".
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return begin == end ? 0 : std::atoi(std::string(line.substr(begin, end - begin)).c_str());
}

// The text between two others, where `from` continues behind it; empty: there is none.
std::string_view between(std::string_view text, std::string_view left, std::string_view right, std::size_t* from) {
  std::size_t begin = text.find(left, *from);
  if (begin == std::string_view::npos) return {};
  begin += left.size();
  const std::size_t end = text.find(right, begin);
  if (end == std::string_view::npos) return {};
  *from = end;
  return text.substr(begin, end - begin);
}

void read_line(std::string_view line, std::vector<ResourceUsage>& found) {
  std::size_t at = 0;
  if (const std::string_view kernel = between(line, "Compiling entry function '", "'", &at); !kernel.empty()) {
    ResourceUsage usage{};
    usage.kernel = kernel;
    usage.architecture = between(line, " for '", "'", &at);
    found.push_back(std::move(usage));
  } else if (!found.empty()) {
    // Functions that are not inlined have lines of their own.
    ResourceUsage& usage = found.back();
    usage.registers = std::max(usage.registers, number_before(line, " registers"));
    usage.stack_bytes = std::max(usage.stack_bytes, number_before(line, " bytes stack frame"));
    usage.spilled_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    usage.shared_bytes = std::max(usage.shared_bytes, number_before(line, " bytes smem"));
  }
}

}  // namespace

std::vector<ResourceUsage> resource_usage(std::string_view log) {
  std::vector<ResourceUsage> found;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    read_line(log.substr(0, end), found);
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return found;
}

int most_registers(int threads) { return threads <= 0 ? 0 : std::min(255, 65536 / threads / 8 * 8); }

std::string trouble_of(const ResourceUsage& usage, int threads) {
  if (usage.registers == 0) return "the log has no registers of it";
  if (usage.spilled_bytes > 0) return "it spills registers to memory";
  if (usage.registers > most_registers(threads)) return "it has more registers than its launch bounds allow";
  return {};
}

}  // namespace seto::testing

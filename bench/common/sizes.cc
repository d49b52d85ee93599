#include "bench/common/sizes.h"

#include <cmath>
#include <cstdlib>

namespace seto::bench {
namespace {

constexpr std::string_view kUnits = "KMGT";

int shift_of(char unit) {
  const std::size_t index = kUnits.find(static_cast<char>(unit >= 'a' ? unit - 'a' + 'A' : unit));
  return index == std::string_view::npos ? -1 : 10 * (static_cast<int>(index) + 1);
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::string number(text);
  if (number.size() > 1 && (number.back() == 'B' || number.back() == 'b')) number.pop_back();
  int shift = 0;
  if (!number.empty() && shift_of(number.back()) > 0) {
    shift = shift_of(number.back());
    number.pop_back();
  }
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::ldexp(std::strtod(number.c_str(), &end), shift);
  if (*end != '\0' || value != std::floor(value) || value >= 0x1p53) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::string size_text(std::uint64_t size) {
  for (int index = static_cast<int>(kUnits.size()) - 1; index >= 0; --index) {
    const int shift = 10 * (index + 1);
    const std::uint64_t unit = std::uint64_t{1} << shift;
    if (size >= unit && size % unit == 0) return std::to_string(size >> shift) + kUnits[static_cast<std::size_t>(index)];
  }
  return std::to_string(size);
}

std::vector<std::uint64_t> sizes_of(const SizeRange& range) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = range.min; size <= range.max;) {
    sizes.push_back(size);
    const std::uint64_t next =
        range.factor > 1 ? std::max<std::uint64_t>(size, 1) * (size == 0 ? 1 : range.factor) : size + range.step;
    if (next <= size) break;
    size = next;
  }
  return sizes;
}

std::size_t part_count(std::size_t elements, std::size_t element_size, int ranks) {
  const std::size_t granule = 16 / element_size;
  return elements / static_cast<std::size_t>(ranks) / granule * granule;
}

}  // namespace seto::bench

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace seto::bench {

// Parses "8", "64K", "1.5M", "2G": binary units, upper or lower case, an optional trailing B. Empty for any other text.
std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest exact spelling with a binary unit: 65536 -> "64K", 100 -> "100".
std::string size_text(std::uint64_t size);

struct SizeRange {
  std::uint64_t min = 32u << 20;
  std::uint64_t max = 32u << 20;
  std::uint64_t step = 1u << 20;  // added, unless factor > 1 multiplies
  std::uint64_t factor = 1;
};
std::vector<std::uint64_t> sizes_of(const SizeRange& range);

// Elements of each rank's part in a collective over equal parts. A part is cut to whole 16 bytes as in nccl-tests, so that every
// part is aligned.
std::size_t part_count(std::size_t elements, std::size_t element_size, int ranks);

}  // namespace seto::bench

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace seto::bench {

// "8", "64K", "1.5M", "2G": binary units, upper or lower case, an optional trailing B. Nothing for anything else.
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

// Elements per rank of a collective over equal parts, cut to whole 16 bytes as nccl-tests does, so that every part is aligned.
std::size_t part_count(std::size_t elements, std::size_t element_size, int ranks);

}  // namespace seto::bench

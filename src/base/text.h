#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace seto {

// Decimal digits only: no sign, no spaces, no overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_uint(std::string_view text);

// Digits and at most one of K, M, G, T (powers of 1024, either case, an optional B or iB after it): "64M", "8", "1KiB".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest text that parse_size reads back exactly: 67108864 -> "64M", 1000 -> "1000".
[[nodiscard]] std::string size_text(std::uint64_t size);

// Converts ASCII letters to lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

// Makes text from a peer safe to print: one line, with a question mark for each character that is not printable ASCII.
[[nodiscard]] std::string plain_ascii(std::string_view text);
// Makes text with bytes of a file safe to print: \x1b for each byte that is not printable ASCII.
[[nodiscard]] std::string escaped(std::string_view text);

// The number of insertions, deletions, substitutions and swaps of adjacent letters that turn one text into the other.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

// The candidate that was probably meant: one that starts with the text; else one with at most two typos; else one that the text
// starts with; else the one with the smallest edit distance. Empty if even that differs in more than a third of its letters.
[[nodiscard]] std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace seto

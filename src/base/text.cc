#include "src/base/text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

namespace seto {
namespace {

struct Unit {
  char header;
  int shift;
};
constexpr Unit kUnits[] = {{'T', 40}, {'G', 30}, {'M', 20}, {'K', 10}};

// A shorter common part says nothing about the word that was meant.
constexpr std::size_t kLeastPrefix = 3;
constexpr std::size_t kTypos = 2;

char upper(char header) { return header >= 'a' && header <= 'z' ? static_cast<char>(header - 'a' + 'A') : header; }
char lower(char header) { return header >= 'A' && header <= 'Z' ? static_cast<char>(header - 'A' + 'a') : header; }

// The shift that the unit after the digits stands for, or nothing if it is not a unit.
std::optional<int> shift_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  const std::string_view tail = suffix.substr(1);
  if (!tail.empty() && tail != "B" && tail != "iB") return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.header == upper(suffix.front())) return unit.shift;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_uint(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_uint(text.substr(0, digits));
  const auto shift = shift_of(text.substr(digits));
  if (!number || !shift) return std::nullopt;
  if (*number > (std::numeric_limits<std::uint64_t>::max() >> *shift)) return std::nullopt;
  return *number << *shift;
}

std::string size_text(std::uint64_t size) {
  for (const Unit& unit : kUnits) {
    const std::uint64_t one = std::uint64_t{1} << unit.shift;
    if (size != 0 && size % one == 0) return std::to_string(size >> unit.shift) + unit.header;
  }
  return std::to_string(size);
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string plain_ascii(std::string_view text) {
  std::string plain(text);
  for (char& character : plain)
    if (character < ' ' || character > '~') character = '?';
  return plain;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string plain;
  for (const char character : text) {
    if (character >= ' ' && character <= '~') {
      plain += character;
      continue;
    }
    const auto byte = static_cast<unsigned char>(character);
    plain.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  }
  return plain;
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Three rows of the usual table of edit distances: a swap looks back two rows.
  std::vector<std::size_t> before_last(right.size() + 1);
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t column = 0; column <= right.size(); ++column) row[column] = column;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[right.size()];
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  std::string_view begun;   // the shortest candidate that starts with the text
  std::string_view begins;  // the longest candidate that the text starts with
  std::string_view best;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < smallest) {
      smallest = distance;
      best = candidate;
    }
    const bool starts = text.size() >= kLeastPrefix && candidate.starts_with(text);
    if (starts && (begun.empty() || candidate.size() < begun.size())) begun = candidate;
    if (candidate.size() >= kLeastPrefix && text.starts_with(candidate) && candidate.size() > begins.size()) begins = candidate;
  }
  if (!begun.empty()) return begun;
  const bool near = smallest <= (best.size() + 2) / 3;
  if (near && smallest <= kTypos) return best;
  if (!begins.empty()) return begins;
  return near ? best : std::string_view();
}

}  // namespace seto

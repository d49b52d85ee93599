#include "src/base/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace seto {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The length of the UTF-8 character at the start of the text. 0: the text starts with none, with a longer form than needed, with
// half of a pair of UTF-16, or with a number beyond U+10FFFF.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0U) != 0x80U) return 0;
  return length;
}

}  // namespace

void JsonWriter::separate() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') text_ += ',';
}

// A reader refuses a document with a byte that is not UTF-8, and texts of users and of the system may have any bytes.
void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char header = text.front();
    if (length == 0) {
      text_ += kReplacement;
    } else if (header == '"' || header == '\\') {
      text_ += '\\';
      text_ += header;
    } else if (static_cast<unsigned char>(header) < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(header)));
      text_ += escaped.data();
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

// The shortest text that reads back as the same number. Infinities and NaN, which JSON lacks, become null.
JsonWriter& JsonWriter::number(double number) {
  separate();
  if (!std::isfinite(number)) {
    text_ += "null";
    return *this;
  }
  std::array<char, 32> digits{};
  text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

}  // namespace seto

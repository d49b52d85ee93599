#include "src/core/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace seto {

void JsonWriter::separate() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') text_ += ',';
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      text_ += '\\';
      text_ += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(letter)));
      text_ += escaped.data();
    } else {
      text_ += letter;
    }
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

// Shortest text that reads back the same; what JSON has no number for is null.
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

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace seto {

// A report is printed for people, or as JSON for programs.
enum class ReportFormat : std::uint8_t { text, json };

// Writes JSON in the order of the calls. It adds commas and escapes, and replaces bytes that are not UTF-8 by U+FFFD; the caller
// must close what it opens.
class JsonWriter final {
 public:
  JsonWriter& open(char bracket);   // '{' or '['
  JsonWriter& close(char bracket);  // '}' or ']'
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& number(double number);
  JsonWriter& number(std::uint64_t number);
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void separate();
  void quote(std::string_view text);

  std::string text_;
};

}  // namespace seto

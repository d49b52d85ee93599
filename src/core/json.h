#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace seto {

// Writes JSON in the order of the calls; commas and escapes are its business, balance is the caller's.
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

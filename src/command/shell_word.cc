#include "src/command/shell_word.h"

#include <string_view>

namespace seto::command {

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text.insert(0, 1, '\'').append(1, '\'');
}

std::string quoted_at_need(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,:@%=-";
  return text.find_first_not_of(kPlain) == std::string::npos ? text : quoted(text);
}

}  // namespace seto::command

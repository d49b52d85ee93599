#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace seto::software_gpu {

struct Token {
  enum class Kind : std::uint8_t { word, number, text, sign, end };

  Kind kind = Kind::end;
  std::string_view text;  // a part of the module's text, without the quotes of a string
  std::uint32_t line = 0;

  [[nodiscard]] bool is(std::string_view other) const { return kind != Kind::text && text == other; }
};

// Splits PTX into tokens, without comments. The last token has kind `end`. A word may contain dots ("ld.param.u64", "%tid.x") and
// double colons (".L2::128B").
[[nodiscard]] std::vector<Token> tokens_of(std::string_view text);

}  // namespace seto::software_gpu

#pragma once

#include <cstdint>
#include <string_view>

namespace seto::software_gpu {

struct Token {
  enum class Kind : std::uint8_t { word, number, text, sign, end };

  Kind kind = Kind::end;
  std::string_view text;  // a part of the module's text, without the quotes of a string
  std::uint32_t line = 0;

  [[nodiscard]] bool is(std::string_view other) const { return kind != Kind::text && text == other; }
};

// Splits PTX into tokens, without comments, one at a time. A word may contain dots ("ld.param.u64", "%tid.x") and double colons
// (".L2::128B").
class Lexer final {
 public:
  Lexer(std::string_view text, std::uint32_t first_line) : text_(text), line_(first_line) {}

  // At the end of the text, a token of kind `end`, again and again.
  Token next();

  // The text of a block, from its opening brace, a token that was read, to the brace that closes it. The next token is that
  // behind the block. Tokens of the block are not looked at, which takes a fraction of the time.
  std::string_view take_block(const Token& brace);

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(position_); }
  [[nodiscard]] bool colons_at(std::size_t position) const { return text_.substr(position, 2) == "::"; }
  void skip_blanks();
  bool skip_comment();
  void advance_to(std::size_t end);
  Token string();
  Token taken(std::size_t length, Token::Kind kind);

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_;
};

// Whether the letter may be part of a word.
[[nodiscard]] bool is_word(char letter);

}  // namespace seto::software_gpu

#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/ptx_lexer.h"

namespace seto::software_gpu {

// A position in the tokens of a module, which both parsers move.
class TokenCursor final {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& peek() const { return tokens_[position_]; }
  [[nodiscard]] const Token& peek_second() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  [[nodiscard]] bool at_end() const { return peek().kind == Token::Kind::end; }

  const Token& next() {
    const Token& token = peek();
    if (!at_end()) ++position_;
    return token;
  }

  bool take(std::string_view text) {
    if (!peek().is(text)) return false;
    next();
    return true;
  }

  void expect(std::string_view text) {
    if (!take(text)) fail(std::string("'") + std::string(text) + "' expected");
  }

  std::string word() {
    if (peek().kind != Token::Kind::word) fail("a name expected");
    return std::string(next().text);
  }

  // Directives like .loc end with their line, not with a semicolon.
  void skip_line() {
    for (const std::uint32_t line = peek().line; !at_end() && peek().line == line;) next();
  }

  void skip_braces() {
    expect("{");
    for (int depth = 1; depth > 0; next()) {
      depth += peek().is("{") ? 1 : peek().is("}") ? -1 : 0;
      if (at_end()) fail("'}' expected");
    }
  }

  // The bits of an integer or of a 0f or 0d literal; a negative integer in two's complement.
  std::uint64_t number() {
    const bool negative = take("-");
    if (peek().kind != Token::Kind::number) fail("a number expected");
    std::string_view digits = next().text;
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0' && std::string_view("xXfFdD").find(digits[1]) != std::string_view::npos) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B')) {
      base = 2;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const std::string_view suffix(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
    if (error != std::errc{} || !(suffix.empty() || suffix == "U"))
      fail(std::string(digits) + " is not a number that is known here");
    return negative ? 0 - value : value;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Fault(FaultKind::syntax,
                "ptx line " + std::to_string(peek().line) + ": " + why + " at '" + std::string(peek().text) + "'");
  }

 private:
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace seto::software_gpu

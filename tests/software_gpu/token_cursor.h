#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/ptx_lexer.h"

namespace seto::software_gpu {

// A position in the tokens of a module, or of the body of one of its functions.
class TokenCursor final {
 public:
  explicit TokenCursor(std::string_view text, std::uint32_t first_line = 1) : lexer_(text, first_line) {
    next();
    next();
  }

  [[nodiscard]] const Token& peek() const { return first_; }
  [[nodiscard]] const Token& peek_second() const { return second_; }
  [[nodiscard]] bool at_end() const { return peek().kind == Token::Kind::end; }

  Token next() {
    const Token token = first_;
    first_ = second_;
    second_ = lexer_.next();
    return token;
  }

  bool take(std::string_view text) {
    if (!peek().is(text)) return false;
    next();
    return true;
  }

  void expect(std::string_view text) {
    if (!take(text)) fail(std::string("'").append(text).append("' expected"));
  }

  std::string word() {
    if (peek().kind != Token::Kind::word) fail("a name expected");
    return std::string(next().text);
  }

  // Directives like .loc end with their line, not with a semicolon.
  void skip_line() {
    for (const std::uint32_t line = peek().line; !at_end() && peek().line == line;) next();
  }

  // The text from an opening brace to the one that closes it.
  std::string_view take_block() {
    if (!peek().is("{")) fail("'{' expected");
    const std::string_view block = lexer_.take_block(first_);
    next();
    next();
    return block;
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
  Lexer lexer_;
  Token first_;
  Token second_;
};

}  // namespace seto::software_gpu

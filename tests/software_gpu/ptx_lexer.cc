#include "tests/software_gpu/ptx_lexer.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "tests/software_gpu/fault.h"

namespace seto::software_gpu {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
}  // namespace

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' || letter == '%' ||
         letter == '.';
}

Token Lexer::next() {
  skip_blanks();
  if (position_ >= text_.size()) return {Token::Kind::end, "end of text", line_};
  const char letter = text_[position_];
  if (letter == '"') return string();
  if (!is_word(letter)) return taken(1, Token::Kind::sign);
  std::size_t length = 1;
  while (position_ + length < text_.size() && (is_word(text_[position_ + length]) || colons_at(position_ + length)))
    length += is_word(text_[position_ + length]) ? 1 : 2;
  return taken(length, is_digit(letter) ? Token::Kind::number : Token::Kind::word);
}

std::string_view Lexer::take_block(const Token& brace) {
  const auto begin = static_cast<std::size_t>(brace.text.data() - text_.data());
  position_ = begin;
  line_ = brace.line;
  int depth = 0;
  do {
    if (position_ >= text_.size())
      throw Fault(FaultKind::syntax, "ptx line " + std::to_string(brace.line) + ": no '}' closes this block");
    const char letter = text_[position_];
    if (letter == '/' && skip_comment()) continue;
    if (letter == '"') {
      static_cast<void>(string());
      continue;
    }
    depth += letter == '{' ? 1 : letter == '}' ? -1 : 0;
    line_ += letter == '\n' ? 1 : 0;
    ++position_;
  } while (depth > 0);
  return text_.substr(begin, position_ - begin);
}

void Lexer::skip_blanks() {
  while (position_ < text_.size()) {
    const char letter = text_[position_];
    if (std::isspace(static_cast<unsigned char>(letter)) != 0 || letter == '\0')
      advance_to(position_ + 1);
    else if (letter != '/' || !skip_comment())
      return;
  }
}

// Whether there was one.
bool Lexer::skip_comment() {
  if (rest().starts_with("//")) {
    position_ = std::min(text_.find('\n', position_), text_.size());
  } else if (rest().starts_with("/*")) {
    const std::size_t end = text_.find("*/", position_ + 2);
    advance_to(end == std::string_view::npos ? text_.size() : end + 2);
  } else {
    return false;
  }
  return true;
}

void Lexer::advance_to(std::size_t end) {
  line_ += static_cast<std::uint32_t>(
      std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  position_ = end;
}

Token Lexer::string() {
  const std::size_t end = text_.find('"', position_ + 1);
  if (end == std::string_view::npos)
    throw Fault(FaultKind::syntax, "ptx line " + std::to_string(line_) + ": a string without an end");
  const Token token{Token::Kind::text, text_.substr(position_ + 1, end - position_ - 1), line_};
  advance_to(end + 1);
  return token;
}

Token Lexer::taken(std::size_t length, Token::Kind kind) {
  const Token token{kind, text_.substr(position_, length), line_};
  position_ += length;
  return token;
}

}  // namespace seto::software_gpu

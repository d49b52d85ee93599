#include "tests/software_gpu/ptx_lexer.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "tests/software_gpu/fault.h"

namespace seto::software_gpu {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' || letter == '%' ||
         letter == '.';
}

class Lexer final {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    for (skip_blanks(); position_ < text_.size(); skip_blanks()) tokens_.push_back(next());
    tokens_.push_back({Token::Kind::end, "end of text", line_});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(position_); }

  void skip_blanks() {
    while (position_ < text_.size()) {
      if (rest().starts_with("//")) {
        position_ = std::min(text_.find('\n', position_), text_.size());
      } else if (rest().starts_with("/*")) {
        const std::size_t end = text_.find("*/", position_ + 2);
        advance_to(end == std::string_view::npos ? text_.size() : end + 2);
      } else if (std::isspace(static_cast<unsigned char>(text_[position_])) != 0 || text_[position_] == '\0') {
        advance_to(position_ + 1);
      } else {
        return;
      }
    }
  }

  void advance_to(std::size_t end) {
    line_ += static_cast<std::uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                                   text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    position_ = end;
  }

  Token next() {
    const char letter = text_[position_];
    if (letter == '"') {
      const std::size_t end = text_.find('"', position_ + 1);
      if (end == std::string_view::npos)
        throw Fault(FaultKind::syntax, "ptx line " + std::to_string(line_) + ": a string without an end");
      const Token token{Token::Kind::text, text_.substr(position_ + 1, end - position_ - 1), line_};
      advance_to(end + 1);
      return token;
    }
    if (!is_word(letter)) return taken(1, Token::Kind::sign);
    std::size_t length = 1;
    while (position_ + length < text_.size() && (is_word(text_[position_ + length]) || colons_at(position_ + length)))
      length += is_word(text_[position_ + length]) ? 1 : 2;
    return taken(length, is_digit(letter) ? Token::Kind::number : Token::Kind::word);
  }

  [[nodiscard]] bool colons_at(std::size_t position) const { return text_.substr(position, 2) == "::"; }

  Token taken(std::size_t length, Token::Kind kind) {
    const Token token{kind, text_.substr(position_, length), line_};
    position_ += length;
    return token;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).run(); }

}  // namespace seto::software_gpu

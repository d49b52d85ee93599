#include "tests/software_gpu/variable_parser.h"

namespace seto::software_gpu {
namespace {

// Element values in braces, which may be nested for arrays of arrays.
void parse_values(TokenCursor& tokens, std::vector<ConstantSyntax>& values) {
  if (tokens.take("{")) {
    while (!tokens.take("}")) {
      parse_values(tokens, values);
      tokens.take(",");
    }
    return;
  }
  ConstantSyntax constant;
  if (tokens.peek().kind == Token::Kind::word) {
    constant.symbol = tokens.word();
    if (constant.symbol == "generic") {
      tokens.expect("(");
      constant.symbol = tokens.word();
      tokens.expect(")");
    }
    constant.value = tokens.take("+") ? tokens.number() : 0;
  } else {
    constant.value = tokens.number();
  }
  values.push_back(constant);
}

std::uint64_t parse_dimensions(TokenCursor& tokens) {
  std::uint64_t count = 1;
  while (tokens.take("[")) {
    count *= tokens.peek().is("]") ? 0 : tokens.number();
    tokens.expect("]");
  }
  return count;
}

}  // namespace

std::optional<Space> space_named(std::string_view directive) {
  if (directive == ".global") return Space::global;
  if (directive == ".const") return Space::constant;
  if (directive == ".shared") return Space::shared;
  if (directive == ".local") return Space::local;
  if (directive == ".param") return Space::param;
  return std::nullopt;
}

VariableSyntax parse_variable(TokenCursor& tokens, Space space) {
  VariableSyntax variable{.name = {}, .space = space, .line = tokens.peek().line};
  std::optional<ScalarType> type;
  std::uint64_t elements = 1;
  while (tokens.peek().text.starts_with(".")) {
    const std::string directive = tokens.word();
    if (directive == ".align")
      variable.alignment = tokens.number();
    else if (directive == ".v2" || directive == ".v4")
      elements = directive == ".v2" ? 2 : 4;
    else if (const auto named = type_named(std::string_view(directive).substr(1)))
      type = named;
    else if (directive != ".ptr" && !space_named(directive) && directive != ".managed")
      tokens.fail(std::string("'") + directive + "' is not known in a variable, before this place");
  }
  if (!type) tokens.fail("a type expected");
  variable.type = *type;
  variable.name = tokens.word();
  variable.bytes = elements * parse_dimensions(tokens) * size_of(*type);
  variable.alignment = std::max<std::uint64_t>(variable.alignment, size_of(*type));
  if (tokens.take("=")) parse_values(tokens, variable.values);
  return variable;
}

}  // namespace seto::software_gpu

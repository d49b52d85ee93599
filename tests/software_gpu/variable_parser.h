#pragma once

#include <optional>

#include "tests/software_gpu/ptx_syntax.h"
#include "tests/software_gpu/token_cursor.h"

namespace seto::software_gpu {

// The space that a directive names (".shared"), if it names one.
[[nodiscard]] std::optional<Space> space_named(std::string_view directive);

// Parses a variable, from after its space up to before the comma, semicolon or parenthesis that ends it.
[[nodiscard]] VariableSyntax parse_variable(TokenCursor& tokens, Space space);

}  // namespace seto::software_gpu

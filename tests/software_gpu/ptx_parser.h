#pragma once

#include <string_view>

#include "tests/software_gpu/ptx_syntax.h"

namespace seto::software_gpu {

// Throws a Fault of kind `syntax` that names the line. Directives for debuggers and for register allocation are skipped. Bodies
// of functions are left to BodyParser: the syntax refers to the text, which must live as long.
[[nodiscard]] ModuleSyntax parse_ptx(std::string_view text);

}  // namespace seto::software_gpu

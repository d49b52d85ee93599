#pragma once

#include <cstddef>
#include <string_view>

namespace seto {

// Of this library, "0.1.0": processes of one job must have the same. At most kVersionSize letters.
inline constexpr std::size_t kVersionSize = 16;
[[nodiscard]] std::string_view library_version();

}  // namespace seto

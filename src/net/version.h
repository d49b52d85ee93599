#pragma once

#include <cstddef>
#include <string_view>

namespace seto {

// The version of this library, "0.1.0", at most kVersionSize characters. All processes of a job must have the same version.
inline constexpr std::size_t kVersionSize = 16;
[[nodiscard]] std::string_view library_version();

}  // namespace seto

#pragma once

#include <string_view>

namespace seto::testing {

// The number of threads of this process with this name.
[[nodiscard]] int threads_named(std::string_view name);

// The same, as soon as there are no more than expected, or after a second. A thread that was joined may stay in the kernel's list
// for a moment, because its joiner is woken before the kernel has removed it.
[[nodiscard]] int threads_left(std::string_view name, int expected);

}  // namespace seto::testing

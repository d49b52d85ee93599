#pragma once

#include <string_view>

namespace seto::testing {

// Threads of this process that have this name.
[[nodiscard]] int threads_named(std::string_view name);

// The same, once there are no more than expected, or after a second: a thread that was joined may stand in the kernel's list for
// a moment more, as whoever joins is woken before the kernel has removed it.
[[nodiscard]] int threads_left(std::string_view name, int expected);

}  // namespace seto::testing

#pragma once

#include <cstdint>

namespace seto::testing {

// A port of 127.0.0.1 at which nobody listens. It stays this process's until it ends, so that the system gives it to nobody else;
// whoever sets SO_REUSEADDR, as listeners do, may listen at it all the same.
[[nodiscard]] std::uint16_t free_port();

}  // namespace seto::testing

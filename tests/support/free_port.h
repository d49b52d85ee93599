#pragma once

#include <cstdint>

namespace seto::testing {

// A port of 127.0.0.1 and ::1 at which no process listens. This process holds it until it ends, so that the system assigns it to
// no other process; a listener with SO_REUSEADDR can use it nevertheless.
[[nodiscard]] std::uint16_t free_port();

}  // namespace seto::testing

#pragma once

#include <cstdint>
#include <string>

#include "src/base/types.h"

namespace seto {

// How often each rank of this process has joined by an id or root that serves many: 0 the first time. Mutable state of the
// process, because ranks that meet again have nothing else in common. A forked child begins anew. Any thread.
[[nodiscard]] std::uint64_t next_init(const std::string& id, Rank rank);

}  // namespace seto

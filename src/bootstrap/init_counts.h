#pragma once

#include <cstdint>
#include <string>

#include "src/base/types.h"

namespace seto {

// Returns how often this rank of this process has joined by this id or root before. The count is mutable state of the process,
// because the communicators of one id share no object. A forked child starts at 0. Any thread may call it.
[[nodiscard]] std::uint64_t next_init(const std::string& id, Rank rank);

}  // namespace seto

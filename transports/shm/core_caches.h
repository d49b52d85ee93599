#pragma once

#include <cstddef>

namespace seto {

// Bytes; 0: unknown.
struct CoreCaches {
  std::size_t second_level = 0;  // of one core
  std::size_t last_level = 0;    // shared by cores
};

// Those of this machine, as the C library knows them.
CoreCaches core_caches();

// The slots of a member between so many members of a node move on through this memory, from operation to operation: it is larger
// than the caches of a core, so that these have lost what a receiver has read when the sender writes there again, and it is a
// small part of the last level, in which the slots lie then. 0: they stay where they are.
std::size_t room_to_move_on(const CoreCaches& caches, std::size_t members, double ranks_per_core);

}  // namespace seto

#pragma once

#include <cstddef>

namespace seto {

struct CoreCaches {
  std::size_t cores = 1;
  std::size_t second_level = 0;  // bytes, of one core
  std::size_t last_level = 0;    // bytes, shared by cores
};

// Those of this machine, as the C library knows them.
CoreCaches core_caches();

// The slots of a member between so many members of a node move on through this memory, from operation to operation: more than the
// own caches of a core, so that what a receiver has read has left them when it is written again, and little of the last level, in
// which it lies then. 0: slots stay where they are, because members share cores, and each finds its cache full of what others
// did.
std::size_t room_to_move_on(const CoreCaches& caches, std::size_t members);

}  // namespace seto

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "src/core/device_memory/device_shapes.h"

namespace seto {

// Makes room for one more shape in a map of at most `most`: takes out those that were launched longest ago, and their programs
// from memory. More are kept only if graphs or launches under way use them. `ended`: as for DeviceShapes::find.
template <class Key>
void make_room(std::map<Key, std::shared_ptr<DeviceShape>>& shapes, std::size_t most, std::uint64_t ended,
               DeviceShapes& staging) {
  while (shapes.size() >= most) {
    auto oldest = shapes.end();
    for (auto each = shapes.begin(); each != shapes.end(); ++each) {
      if (each->second->is_captured || each->second->last_launch > ended) continue;
      if (oldest == shapes.end() || each->second->last_launch < oldest->second->last_launch) oldest = each;
    }
    if (oldest == shapes.end()) return;
    staging.unstage(*oldest->second);
    shapes.erase(oldest);
  }
}

}  // namespace seto

#include "src/core/device_memory/placed_shapes.h"

#include <algorithm>
#include <cstring>

namespace seto {

Result<std::shared_ptr<DeviceShape>> PlacedShapes::find(const std::shared_ptr<DeviceShape>& shape,
                                                        const std::vector<LentDistance>& distances, std::uint64_t ended) {
  const Key key{shape, distances};
  if (const auto found = placed_.find(key); found != placed_.end()) return found->second;
  make_room(ended);
  auto made = std::make_shared<DeviceShape>(*shape);
  made->is_copied = false;
  made->is_captured = false;
  place_lent(made->image, made->end_peers, distances);
  std::array<std::byte, 8> scalar{};
  std::memcpy(scalar.data(), reinterpret_cast<const std::byte*>(shape->staged) + (shape->scalar - shape->program), scalar.size());
  SETO_TRY(shapes_.stage(made->image, scalar, *made));
  return placed_.emplace(key, std::move(made)).first->second;
}

// More shapes are kept only if graphs or launches under way use them.
void PlacedShapes::make_room(std::uint64_t ended) {
  if (placed_.size() < kMostShapes) return;
  auto oldest = placed_.end();
  for (auto each = placed_.begin(); each != placed_.end(); ++each) {
    if (each->second->is_captured || each->second->last_launch > ended) continue;
    if (oldest == placed_.end() || each->second->last_launch < oldest->second->last_launch) oldest = each;
  }
  if (oldest == placed_.end()) return;
  shapes_.unstage(*oldest->second);
  placed_.erase(oldest);
}

}  // namespace seto

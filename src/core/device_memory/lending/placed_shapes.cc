#include "src/core/device_memory/lending/placed_shapes.h"

#include <algorithm>
#include <cstring>

#include "src/core/device_memory/shape_room.h"

namespace seto {

Result<std::shared_ptr<DeviceShape>> PlacedShapes::find(const std::shared_ptr<DeviceShape>& shape,
                                                        const std::vector<LentDistance>& distances, std::uint64_t ended) {
  const Key key{shape, distances};
  if (const auto found = placed_.find(key); found != placed_.end()) return found->second;
  make_room(placed_, kMostShapes, ended, shapes_);
  auto made = std::make_shared<DeviceShape>(*shape);
  made->is_copied = false;
  made->is_captured = false;
  place_lent(made->image, made->end_peers, distances);
  std::array<std::byte, 8> scalar{};
  std::memcpy(scalar.data(), reinterpret_cast<const std::byte*>(shape->staged) + (shape->scalar - shape->program), scalar.size());
  SETO_TRY(shapes_.stage(made->image, scalar, *made));
  return placed_.emplace(key, std::move(made)).first->second;
}

}  // namespace seto

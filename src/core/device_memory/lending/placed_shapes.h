#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "src/core/device_memory/device_shapes.h"
#include "src/engine/device/lent_places.h"

namespace seto {

// Call shapes whose programs lend addresses at which GPUs of other processes see the buffers: a program for each place where
// these have mapped them. One thread at a time; the context is current.
class PlacedShapes final {
 public:
  explicit PlacedShapes(DeviceShapes& shapes) : shapes_(shapes) {}

  // `distances`: by rank. `ended`: as for DeviceShapes::find.
  Result<std::shared_ptr<DeviceShape>> find(const std::shared_ptr<DeviceShape>& shape, const std::vector<LentDistance>& distances,
                                            std::uint64_t ended);

  static constexpr std::size_t kMostShapes = 256;

 private:
  // A shape that is in a key stays, so that no other one gets its address.
  using Key = std::pair<std::shared_ptr<DeviceShape>, std::vector<LentDistance>>;

  DeviceShapes& shapes_;
  std::map<Key, std::shared_ptr<DeviceShape>> placed_;
};

}  // namespace seto

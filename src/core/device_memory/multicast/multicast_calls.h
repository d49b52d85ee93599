#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "src/core/call/collective_call.h"
#include "src/core/device_memory/device_shapes.h"
#include "src/core/device_memory/multicast/multicast_memory.h"
#include "src/engine/kernels/multicast/multicast_program.h"

namespace seto {

// The calls of one device communicator that run by NVLink multicast (decision 49). One thread at a time; the context is current.
class MulticastCalls final {
 public:
  // All ranks call it. They find alike whether the ranks can, and say why not where SETO_NVLS asks for it.
  // `staging` outlives the object.
  static Result<std::unique_ptr<MulticastCalls>> create(const MulticastMemory::Setup& setup, const Config& config,
                                                        DeviceShapes& staging, Bootstrap& bootstrap, Deadline until);
  // The shape by which the call runs: `shape`, which was found for it, unless multicast can do it. `ended`: as for
  // DeviceShapes::find.
  Result<std::shared_ptr<DeviceShape>> find(const Call& call, const std::shared_ptr<DeviceShape>& shape, std::uint64_t ended);

  static constexpr std::size_t kMostShapes = 256;

 private:
  MulticastCalls(const MulticastMemory::Setup& setup, const Config& config, DeviceShapes& staging);
  [[nodiscard]] bool takes(const Call& call, const DeviceShape& shape) const;
  Result<std::shared_ptr<DeviceShape>> bind(const Call& call, const DeviceShape& shape) const;

  const GpuContext& gpu_;
  DeviceShapes& staging_;
  const bool is_pinned_;         // SETO_ALGORITHM, which is obeyed
  const bool is_deterministic_;  // SETO_DETERMINISTIC
  const std::uint32_t rank_, ranks_;
  std::uint32_t most_blocks_ = 1;
  std::unique_ptr<MulticastMemory> memory_;
  bool is_ready_ = false;  // the ranks have agreed on that
  // By the shape that each replaces. One that is in a key stays, so that no other one gets its address.
  std::map<std::shared_ptr<DeviceShape>, std::shared_ptr<DeviceShape>> shapes_;
};

}  // namespace seto

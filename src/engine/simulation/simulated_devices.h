#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/engine/bound_program.h"
#include "src/engine/device/device_lowering.h"

namespace seto {

// Where the time of blocks goes. Waiting for a peer is the time of that peer, plus its flag.
enum class DeviceCost : std::uint8_t {
  flags,     // a flag on its way to a peer, until its poll sees it
  fences,    // stores are waited for before a flag says that they are there
  barriers,  // of a block
  latency,   // of the first bytes of a pass
  blocks,    // bytes at the rate of the blocks
  memory,    // bytes at the rate of the GPU's memory
  links,     // bytes at the rate of the links between GPUs
};
inline constexpr std::size_t kDeviceCosts = 7;
using DeviceCosts = std::array<double, kDeviceCosts>;  // nanoseconds, by DeviceCost

// GPUs and the links between them, as values.
struct SimulatedDevices {
  double flag_ns = 0;                    // from the store of a flag in a peer's memory until a poll there sees it
  double fence_ns = 0;                   // from the last store in a peer's memory until it is known to have arrived
  double local_fence_ns = 0;             // the same for a store in the own memory
  double barrier_ns = 0;                 // of the threads of a block
  double latency_ns = 0;                 // of a load from the own memory
  double block_ns_per_byte = 0;          // of each block, for each byte that it loads or stores
  double memory_ns_per_byte = 0;         // of a GPU's memory, for each byte that is read or written
  std::vector<double> port_ns_per_byte;  // by rank: all its links to peers together, in one direction
  std::function<double(Rank from, Rank to)> pair_ns_per_byte;  // the links by which one of them reaches the other
};

// Numbers that follow from a rank's program alone.
struct DeviceCounts {
  std::uint64_t barriers = 0;    // of each block
  std::uint64_t passes = 0;      // that have elements
  std::uint64_t flags = 0;       // that each block stores in the memory of peers during its steps
  double memory_bytes = 0;       // read or written in the own memory by the own blocks
  double block_bytes = 0;        // loaded or stored by the busiest block
  std::vector<double> bytes_to;  // by peer: stored in its memory, or loaded by it
};

// The longest chain of events, from the begin of the call to its end.
struct DevicePath {
  DeviceCosts ns{};
  std::uint32_t waits = 0;  // for flags of other ranks

  [[nodiscard]] DeviceCost binding() const;  // the largest part
};

struct DeviceOutcome {
  std::vector<double> finish_ns;  // by rank
  std::vector<DeviceCounts> counts;
  DevicePath path;
  std::uint32_t hops = 0;     // messages that follow from each other: flags that a value waits for on its way
  std::size_t workspace = 0;  // bytes, of the rank that has most

  [[nodiscard]] double longest_ns() const;
};

// Runs the device programs of all ranks in virtual time: every step of every slice, as src/engine/kernels/interpreter.h executes
// them. README.md has the model. Equal requests give equal outcomes. Programs that get stuck are a failure.
Result<DeviceOutcome> simulate_devices(std::span<const BoundProgram> programs, const DeviceCut& cut,
                                       const SimulatedDevices& devices);

}  // namespace seto

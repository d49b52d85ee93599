#pragma once

#include <memory>

#include "src/base/config.h"
#include "src/core/device_relay/gpu_slot_memory.h"

namespace seto {

// Slots for messages in memory of the GPU, whose context is current, where a trial has shown that a device of this host reads
// it. Null: there is no such device, the settings want none, or there is no memory, which is said. Says once in a process for a
// GPU which way messages take. Fails nothing.
[[nodiscard]] std::unique_ptr<GpuSlotMemory> gpu_slots_for_messages(const cuda::Driver& driver, cuda::DeviceNumber gpu,
                                                                    cuda::Context context, const Config& config);

}  // namespace seto

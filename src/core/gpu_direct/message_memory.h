#pragma once

#include <memory>
#include <optional>

#include "src/base/config.h"
#include "src/core/device_relay/gpu_slot_memory.h"
#include "src/core/device_relay/relay.h"

namespace seto {

// The slots for messages that memory of this GPU may have, whose context is current, because a trial has shown that a device of
// this host reads it. Absent: there is no such device, or the settings want none. Says once in a process for a GPU which way
// messages take. Takes no memory but that of the trial, and fails nothing.
[[nodiscard]] std::optional<GpuSlotMemory::Setup> gpu_slots_for_messages(const cuda::Driver& driver, cuda::DeviceNumber gpu,
                                                                         cuda::Context context, const Config& config);

// Takes their memory for the relay, before its first operation; they are wanted no more. Where there is none, which is said,
// messages stay in memory of the host. The slots are given back when no kernel runs.
void take_gpu_slots(std::optional<GpuSlotMemory::Setup>& wanted, std::unique_ptr<GpuSlotMemory>& slots, Relay& relay);

}  // namespace seto

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/device/cuda/driver.h"
#include "transports/gpu_buffer.h"

namespace seto {

// How the RDMA devices of this host reach memory of the GPU, whose context is current. Tried once in a process. Empty: the host
// has no device that the settings permit.
[[nodiscard]] std::vector<GpuReach> reach_of_gpu(const cuda::Driver& driver, cuda::DeviceNumber gpu, const Config& config);

// Where messages lie that a communicator relays.
enum class MessagesOf : std::uint8_t { host, gpu_and_host };

// The same at info level, once in a process for a GPU, when a communicator relays messages of it. Fails nothing.
void say_gpu_reach(const cuda::Driver& driver, cuda::DeviceNumber gpu, const Config& config, MessagesOf memory);

// "reads and writes it by dma-buf": the device does so with memory of the GPU.
[[nodiscard]] std::string words_of(const GpuReach& reach);

}  // namespace seto

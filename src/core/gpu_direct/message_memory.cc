#include "src/core/gpu_direct/message_memory.h"

#include <algorithm>
#include <string>

#include "src/base/log.h"
#include "src/core/device_relay/staging.h"
#include "src/core/gpu_direct/gpu_reach.h"

namespace seto {

std::unique_ptr<GpuSlotMemory> gpu_slots_for_messages(const cuda::Driver& driver, cuda::DeviceNumber gpu, cuda::Context context,
                                                      const Config& config) {
  GpuSlotMemory::Setup setup;
  setup.driver = &driver;
  setup.gpu = gpu;
  setup.context = context;
  setup.size = kStagedMessages;
  setup.reach = reach_of_gpu(driver, gpu, config);
  const bool is_read =
      std::any_of(setup.reach.begin(), setup.reach.end(), [](const GpuReach& one) { return one.way != GpuWay::bounce; });
  std::unique_ptr<GpuSlotMemory> slots;
  if (is_read && config.gpu_direct != GpuDirect::off) {
    Result<std::unique_ptr<GpuSlotMemory>> made = GpuSlotMemory::create(std::move(setup));
    if (made.ok())
      slots = std::move(made).value();
    else
      SETO_LOG(info, "GPU %d has no memory for messages that RDMA devices read: %s", gpu,
               std::string(made.status().text()).c_str());
  }
  say_gpu_reach(driver, gpu, config, slots != nullptr ? MessagesOf::gpu_and_host : MessagesOf::host);
  return slots;
}

}  // namespace seto

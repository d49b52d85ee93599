#include "src/core/gpu_direct/message_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/core/device_relay/staging.h"
#include "src/core/gpu_direct/gpu_reach.h"

namespace seto {

std::optional<GpuSlotMemory::Setup> gpu_slots_for_messages(const cuda::Driver& driver, cuda::DeviceNumber gpu,
                                                           cuda::Context context, const Config& config) {
  GpuSlotMemory::Setup setup{&driver, gpu, context, kStagedMessages, reach_of_gpu(driver, gpu, config)};
  const bool is_read =
      std::any_of(setup.reach.begin(), setup.reach.end(), [](const GpuReach& one) { return one.way != GpuWay::bounce; });
  const bool used = is_read && config.gpu_direct != GpuDirect::off;
  say_gpu_reach(driver, gpu, config, used ? MessagesOf::gpu_and_host : MessagesOf::host);
  return used ? std::optional(std::move(setup)) : std::nullopt;
}

void take_gpu_slots(std::optional<GpuSlotMemory::Setup>& wanted, std::unique_ptr<GpuSlotMemory>& slots, Relay& relay) {
  slots = std::make_unique<GpuSlotMemory>(*wanted);
  const Status made = slots->prepare();
  if (!made.ok())
    SETO_LOG(info, "GPU %d has no memory for messages that RDMA devices read, and they stay in memory of the host: %s",
             wanted->gpu, std::string(made.text()).c_str());
  wanted.reset();
  relay.use_slots(made.ok() ? slots.get() : nullptr);
}

}  // namespace seto

#include "src/core/gpu_direct/gpu_reach.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/core/connect/transport_list.h"
#include "src/core/gpu_direct/trial_memory.h"

namespace seto {
namespace {

constexpr std::uint64_t kTrialMs = 2'000;  // for all devices of a GPU

// The answers of the process are never destroyed: communicators may outlive static objects.
struct Known {
  std::mutex mutex;
  std::map<std::pair<cuda::DeviceNumber, std::string>, std::vector<GpuReach>> reach;  // by SETO_RDMA, too
  std::set<cuda::DeviceNumber> said;
};
Known& known() {
  static auto* const only = new Known;
  return *only;
}

std::vector<GpuReach> try_devices(const cuda::Driver& driver, cuda::DeviceNumber gpu, const Config& config) {
  if (lower_case(config.rdma) == "off") return {};  // the driver of a device may be what the user avoids
  const Result<std::vector<PortWords>> ports = rdma_ports();
  if (!ports.ok() || ports.value().empty()) return {};
  const Result<std::unique_ptr<TrialMemory>> memory = TrialMemory::create(driver, gpu);
  if (memory.ok()) return rdma_reach(config, *memory.value(), Deadline::after_ms(kTrialMs));
  return {GpuReach{"each RDMA device", GpuWay::bounce, false, std::string(memory.status().text())}};
}

}  // namespace

std::vector<GpuReach> reach_of_gpu(const cuda::Driver& driver, cuda::DeviceNumber gpu, const Config& config) {
  const std::lock_guard lock(known().mutex);
  const std::pair key(gpu, config.rdma);
  const auto found = known().reach.find(key);
  if (found != known().reach.end()) return found->second;
  return known().reach[key] = try_devices(driver, gpu, config);
}

void say_gpu_reach(const cuda::Driver& driver, cuda::DeviceNumber gpu, const Config& config, MessagesOf memory) {
  const std::vector<GpuReach> all = reach_of_gpu(driver, gpu, config);
  {
    const std::lock_guard lock(known().mutex);
    if (all.empty() || !known().said.insert(gpu).second) return;
  }
  std::string text;
  for (const GpuReach& reach : all)
    text += (text.empty() ? "" : "; ") + reach.device + " " + words_of(reach) +
            (reach.why_less.empty() ? "" : " (" + reach.why_less + ")");
  if (memory == MessagesOf::gpu_and_host)
    SETO_LOG(
        info,
        "long messages of collectives of GPU %d are read from its memory where a rail carries them; others are copied through "
        "pinned memory of the host, and so is what comes; in a trial: %s",
        gpu, text.c_str());
  else
    SETO_LOG(info,
             "messages of GPU %d to GPUs that it does not reach are copied through pinned memory of the host; in a trial: %s",
             gpu, text.c_str());
}

std::string words_of(const GpuReach& reach) {
  if (reach.way == GpuWay::bounce) return "does not reach it";
  return std::string(reach.writes ? "reads and writes it by " : "only reads it, by ") + name_of(reach.way);
}

}  // namespace seto

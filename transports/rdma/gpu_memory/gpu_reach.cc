#include "transports/rdma/gpu_memory/gpu_reach.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "transports/rdma/gpu_memory/gpu_trial.h"
#include "transports/rdma/gpu_memory/loopback.h"
#include "transports/rdma/pipes/rdma_pipes.h"
#include "transports/rdma/verbs/process_verbs.h"

namespace seto::rdma {
namespace {

// The module was once distributed under the second name.
Status find_peermem(const std::string& modules) {
  std::error_code error;
  for (const char* const name : {"nvidia_peermem", "nv_peer_mem"})
    if (std::filesystem::exists(modules + "/" + name, error)) return {};
  return failure(Code::unavailable, "the module nvidia_peermem is not loaded");
}

// A way needs this of the GPU and of the kernel, before a device is asked.
struct Ground {
  GpuWay way = GpuWay::dma_buf;
  Fd dma_buf;
};

Result<Ground> ground_of(GpuWay way, GpuBuffer& buffer, const std::string& modules) {
  Ground ground;
  ground.way = way;
  if (way == GpuWay::peermem) {
    SETO_TRY(find_peermem(modules));
  } else {
    SETO_ASSIGN(ground.dma_buf, buffer.dma_buf());
  }
  return ground;
}

Result<std::unique_ptr<MemoryRegion>> register_buffer(VerbsDevice& device, const GpuBuffer& buffer, const Ground& ground) {
  if (ground.way == GpuWay::peermem) return device.register_memory(reinterpret_cast<std::byte*>(buffer.address()), buffer.size());
  return device.register_dma_buf({ground.dma_buf.get(), 0, buffer.address(), buffer.size()});
}

GpuTrial try_way(Loopback& loopback, GpuBuffer& buffer, const Ground& ground, Deadline until) {
  const Result<std::unique_ptr<MemoryRegion>> region = register_buffer(loopback.device(), buffer, ground);
  if (!region.ok()) return {region.status(), region.status()};
  return try_gpu_memory(loopback, buffer, *region.value(), until);
}

bool permits(const std::vector<PortName>& only, const std::string& device) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const PortName& one) { return one.device == device; });
}

}  // namespace

GpuReach find_gpu_reach(Verbs& verbs, const std::string& device, GpuBuffer& buffer, Deadline until, const std::string& modules) {
  GpuReach reach;
  reach.device = device;
  const auto note = [&](GpuWay way, const Status& why) {
    reach.why_less += (reach.why_less.empty() ? "" : "; ") + std::string(name_of(way)) + ": " + std::string(why.text());
  };
  for (const GpuWay way : {GpuWay::dma_buf, GpuWay::peermem}) {
    const Result<Ground> ground = ground_of(way, buffer, modules);
    if (!ground.ok()) {
      note(way, ground.status());
      continue;
    }
    // Each way has a channel of its own, because a trial that fails breaks it.
    const Result<std::unique_ptr<Loopback>> loopback = Loopback::open(verbs, device, until);
    const Status& opened = loopback.status();
    const GpuTrial trial = opened.ok() ? try_way(*loopback.value(), buffer, ground.value(), until) : GpuTrial{opened, opened};
    if (!trial.reads.ok()) {
      note(way, trial.reads);
      continue;
    }
    reach.way = way;
    reach.writes = trial.writes.ok();
    if (!reach.writes) note(way, failure(Code::unavailable, "it only reads: %s", std::string(trial.writes.text()).c_str()));
    return reach;
  }
  return reach;
}

std::vector<GpuReach> find_gpu_reach(std::string_view setting, GpuBuffer& buffer, Deadline until) {
  std::string text(setting);
  for (const char* const word : {"auto", "always"})
    if (strcasecmp(text.c_str(), word) == 0) text = word;
  if (strcasecmp(text.c_str(), "off") == 0 || !has_devices()) return {};
  const Result<std::vector<PortName>> only = ports_in(text);
  const Result<Verbs*> verbs = verbs_of_process();
  if (!only.ok() || !verbs.ok()) return {};  // who makes rails says so
  const Result<std::vector<std::string>> names = verbs.value()->devices();
  std::vector<GpuReach> all;
  if (!names.ok()) return all;
  for (const std::string& name : names.value())
    if (permits(only.value(), name)) all.push_back(find_gpu_reach(*verbs.value(), name, buffer, until));
  return all;
}

}  // namespace seto::rdma

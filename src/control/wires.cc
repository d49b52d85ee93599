#include "src/control/channel/control_channels.h"

#include <atomic>
#include <mutex>

#include "src/base/log.h"
#include "src/control/wire_hub.h"

namespace seto {
namespace {

// Of this process, as control_process.cc; leaked for the same reason.
std::atomic<Wires*> present_wires{nullptr};

}  // namespace

Result<Wires*> Wires::of_process(FrontDoor& door, const LivenessSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (Wires* const wires = present_wires.load(std::memory_order_acquire)) return wires;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Wires* const wires = present_wires.load(std::memory_order_acquire)) return wires;
  SETO_ASSIGN(auto wires, create(*control, door, settings));
  present_wires.store(wires.get(), std::memory_order_release);
  return wires.release();
}

Result<std::unique_ptr<Wires>> Wires::create(ControlThread& control, FrontDoor& door, const LivenessSettings& settings) {
  SETO_ASSIGN(auto hub, WireHub::create(control, door, settings));
  return std::unique_ptr<Wires>(std::move(hub));
}

}  // namespace seto

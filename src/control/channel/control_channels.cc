#include "src/control/channel/control_channels.h"

#include <atomic>
#include <mutex>

#include "src/base/log.h"
#include "src/control/channel/control_channel_hub.h"

namespace seto {
namespace {

// The one of this process; never destroyed, for the reason in control_process.cc.
std::atomic<ControlChannels*> present_channels{nullptr};

}  // namespace

Result<ControlChannels*> ControlChannels::of_process(TcpConnector& connector, const LivenessSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (ControlChannels* const channels = present_channels.load(std::memory_order_acquire)) return channels;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (ControlChannels* const channels = present_channels.load(std::memory_order_acquire)) return channels;
  SETO_ASSIGN(auto channels, create(*control, connector, settings));
  present_channels.store(channels.get(), std::memory_order_release);
  return channels.release();
}

Result<std::unique_ptr<ControlChannels>> ControlChannels::create(ControlThread& control, TcpConnector& connector,
                                                                 const LivenessSettings& settings) {
  SETO_ASSIGN(auto hub, ControlChannelHub::create(control, connector, settings));
  return std::unique_ptr<ControlChannels>(std::move(hub));
}

}  // namespace seto

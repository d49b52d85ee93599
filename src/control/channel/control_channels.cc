#include "src/control/channel/control_channels.h"

#include <atomic>
#include <mutex>

#include "src/base/log.h"
#include "src/control/channel/control_channel_hub.h"

namespace seto {
namespace {

// The one of this process; never destroyed, for the reason in control_process.cc.
std::atomic<ControlChannels*> present_channels{nullptr};

// Other processes may hear the last words of this one over further ones, which acknowledge them. Runs before the control thread
// is stopped, because it was made later.
constexpr std::uint64_t kLastWordsMs = 2'000;
struct FinishAtExit {
  explicit FinishAtExit(ControlChannelHub& channels) : hub(channels) {}
  FinishAtExit(const FinishAtExit&) = delete;
  FinishAtExit& operator=(const FinishAtExit&) = delete;
  ~FinishAtExit() { hub.finish_overlays(Deadline::after_ms(kLastWordsMs)); }
  ControlChannelHub& hub;
};

}  // namespace

Result<ControlChannels*> ControlChannels::of_process(TcpConnector& connector, const LivenessSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (ControlChannels* const channels = present_channels.load(std::memory_order_acquire)) return channels;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (ControlChannels* const channels = present_channels.load(std::memory_order_acquire)) return channels;
  SETO_ASSIGN(auto channels, ControlChannelHub::create(*control, connector, settings));
  static const FinishAtExit finish_at_exit(*channels);
  present_channels.store(channels.get(), std::memory_order_release);
  return channels.release();
}

Result<std::unique_ptr<ControlChannels>> ControlChannels::create(ControlThread& control, TcpConnector& connector,
                                                                 const LivenessSettings& settings) {
  SETO_ASSIGN(auto hub, ControlChannelHub::create(control, connector, settings));
  return std::unique_ptr<ControlChannels>(std::move(hub));
}

}  // namespace seto

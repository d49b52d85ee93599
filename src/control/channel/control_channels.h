#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/control/channel/message_handlers.h"
#include "src/control/liveness/peer_liveness.h"
#include "src/control/network/tcp_connector.h"

namespace seto {

// The longest message or answer.
inline constexpr std::size_t kMessageLimit = 4'000;

// The control connection to another process of the job, shared by all communicators that use it. The control thread drives it.
// All functions may be called from any thread, and none blocks. It is open while a shared_ptr to it exists; when it closes, it
// tells the peer, so that the peer does not take the close for a death.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // True once the other process has ended or was silent for too long; never becomes false again.
  [[nodiscard]] virtual const std::atomic<bool>& dead() const = 0;
  // "its process has ended", "its process gave no sign of life for 5.0 s (SETO_LIVENESS_TIMEOUT_MS)", ...; empty while it lives.
  [[nodiscard]] virtual std::string why() const = 0;
  // Calls back with its socket, for questions to the kernel: addresses, round trip. Does not, while it has none. Short.
  virtual void ask_kernel(const std::function<void(int descriptor)>& question) const = 0;

  // The process is at another site, of this name. While no process of that site answers, and not even the kernel of its host
  // acknowledges anything, it is cut off: it is waited for so long in place of the liveness timeout. The last call counts.
  virtual void at_site(std::string_view name, std::uint64_t patience_ms) = 0;

  // Keeps a callback registered. The destructor waits for the callback to end (unless the callback itself destroys it).
  class OnDeath {
   public:
    virtual ~OnDeath() = default;
  };
  // Calls back once, on the control thread with no lock held; soon, if the process is dead already.
  [[nodiscard]] virtual std::unique_ptr<OnDeath> on_death(std::function<void()> callback) = 0;

  // Asks the handler (key, to_member) of the other process to send its answer to the handler (key, from_member) of this one. An
  // ask or its answer is dropped if too many bytes wait to be sent: ask again.
  virtual void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) = 0;
  // Sends at most kMessageLimit bytes to the handler (key, to_member) of the other process. Messages arrive in order.
  virtual void send_message(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) = 0;
};

class ControlOverlay;
struct ControlOverlaySetup;

// The control channels of this process: one for each other process and key.
class ControlChannels {
 public:
  // The one of this process. The settings of the first call are used.
  static Result<ControlChannels*> of_process(TcpConnector& connector, const LivenessSettings& settings);
  // `connector` and its control thread outlive the result, which outlives its channels.
  static Result<std::unique_ptr<ControlChannels>> create(ControlThread& control, TcpConnector& connector,
                                                         const LivenessSettings& settings);
  virtual ~ControlChannels() = default;

  // Like TcpConnector::connect, with its guarantees and texts: both contexts call it, and both get their end of one channel, an
  // existing one if possible. Ignores the purpose of the request. The channel holds the key admitted.
  [[nodiscard]] virtual Result<std::shared_ptr<ControlChannel>> connect(const ConnectRequest& request) = 0;

  // The overlay of an attempt, for each context of this process. One that holds it until all members have joined joins nothing
  // that this process has left.
  [[nodiscard]] virtual Result<std::shared_ptr<ControlOverlay>> join_overlay(const ControlOverlaySetup& setup) = 0;

  [[nodiscard]] virtual MessageHandlers& handlers() = 0;
};

}  // namespace seto

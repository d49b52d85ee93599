#pragma once

#include <cstdint>
#include <memory>

#include "src/base/status.h"
#include "src/control/channel/control_frames.h"
#include "src/control/channel/death_callbacks.h"
#include "src/control/channel/message_handlers.h"
#include "src/control/control_thread.h"
#include "src/control/liveness/peer_liveness.h"
#include "src/control/network/tcp_connector.h"
#include "src/net/tls/secure_stream.h"

namespace seto {

class TcpControlChannel;
class TcpControlOverlay;

// The process at the other end of a channel, and the key of the job.
struct ControlChannelPeer {
  KeyId key{};
  Token process{};
  auto operator<=>(const ControlChannelPeer&) const = default;
};

// How to reach that process again; holds the key admitted.
struct ControlChannelRoute {
  TcpConnector::Plan plan;
  Admission admission;
};

// The interface of the hub that owns the channels of the process, as a channel uses it.
class ControlChannelOwner {
 public:
  virtual ~ControlChannelOwner() = default;
  [[nodiscard]] virtual ControlThread& control() = 0;
  [[nodiscard]] virtual const HeartbeatTimer& heartbeat_timer() = 0;
  [[nodiscard]] virtual MessageHandlers& message_handlers() = 0;
  [[nodiscard]] virtual DeathCallbacks& deaths() = 0;
  // Makes the control thread call handle_attention() soon. Any thread.
  virtual void needs_attention(std::weak_ptr<TcpControlChannel> channel) = 0;
  // On the control thread. negotiate(): a propose, agree or refuse frame was received. ended(): the peer is dead or has closed.
  virtual void negotiate(const std::shared_ptr<TcpControlChannel>& channel, const ControlFrame& frame) = 0;
  virtual void ended(const TcpControlChannel& channel) = 0;
  // On the control thread: a frame of an overlay was received. A failure means that the peer sends nonsense.
  [[nodiscard]] virtual Status pass_on(const TcpControlChannel& channel, const ControlFrame& frame) = 0;
  // Makes the control thread call handle_attention() soon. Any thread.
  virtual void overlay_needs_attention(std::weak_ptr<TcpControlOverlay> overlay) = 0;
  // This process has left, and no other one needs it. Any thread.
  virtual void overlay_over(AttemptId attempt) = 0;
  // The connection of a channel has broken, or stands still: it is to be made again. Any thread.
  virtual void connect_again(const std::shared_ptr<TcpControlChannel>& channel) = 0;
  // A channel was created.
  virtual void channel_created() = 0;
  // The last call of a channel to its owner. Any thread.
  virtual void channel_destroyed() = 0;
  // Keeps the socket open until the peer has closed too; the peer might lose the final frames otherwise. Any thread.
  virtual void linger(SecureStream socket) = 0;
};

}  // namespace seto

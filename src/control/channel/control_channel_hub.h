#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/base/work_threads.h"
#include "src/control/channel/control_channels.h"
#include "src/control/channel/control_overlay.h"
#include "src/control/channel/tcp_control_channel.h"
#include "src/control/control_thread.h"
#include "src/control/network/tcp_connector.h"

namespace seto {

// The control channels of a process. The process of the caller (see TcpConnector::connect) opens a channel if there is none, and
// proposes on it to share it for two contexts (propose); the other process agrees once its context asks for it (agree). So both
// ends always use the same channel, also while an old one is being closed.
class ControlChannelHub final : public ControlChannels, private ControlChannelOwner {
 public:
  static Result<std::unique_ptr<ControlChannelHub>> create(ControlThread& control, TcpConnector& connector,
                                                           const LivenessSettings& settings);
  ControlChannelHub(const ControlChannelHub&) = delete;
  ControlChannelHub& operator=(const ControlChannelHub&) = delete;
  ~ControlChannelHub() override;

  [[nodiscard]] Result<std::shared_ptr<ControlChannel>> connect(const ConnectRequest& request) override;
  [[nodiscard]] Result<std::shared_ptr<ControlOverlay>> join_overlay(const ControlOverlaySetup& setup) override;
  [[nodiscard]] MessageHandlers& handlers() override { return handlers_; }
  // Waits until the last words of overlays that this process leaves are heard. At the deadline it leaves them all the same, so
  // that its end is no loss for others.
  void finish_overlays(Deadline until);

 private:
  // The peer and key of a channel, with the two contexts and the attempt in which they share it.
  struct ContextPair {
    ControlChannelPeer peer;
    ContextId caller = 0;
    ContextId answerer = 0;
    AttemptId attempt = 0;
    auto operator<=>(const ContextPair&) const = default;
  };
  // A proposal of this side that the other end has not answered yet.
  struct Proposal {
    enum class Answer : std::uint8_t { none, agreed, refused } answer = Answer::none;
    Status reason;
  };
  // The channel to a process that this one opened.
  struct Outgoing {
    std::weak_ptr<TcpControlChannel> channel;
    bool dialing = false;
  };
  struct Lingering {
    std::uint64_t id = 0;
    SecureStream socket;
    Watch watch;
  };
  struct Overlay {
    std::shared_ptr<TcpControlOverlay> overlay;
    std::weak_ptr<ControlOverlay> use;
  };
  struct Dialed {
    std::shared_ptr<TcpControlChannel> channel;
    bool fresh = false;  // new: its handshake has already made the proposal
  };

  ControlChannelHub(ControlThread& control, TcpConnector& connector) : control_(control), connector_(connector) {}
  [[nodiscard]] static ContextPair pair_of(const TcpConnector::Plan& plan);

  // ControlChannelOwner
  [[nodiscard]] ControlThread& control() override { return control_; }
  [[nodiscard]] const HeartbeatTimer& heartbeat_timer() override { return *heartbeat_timer_; }
  [[nodiscard]] MessageHandlers& message_handlers() override { return handlers_; }
  [[nodiscard]] DeathCallbacks& deaths() override { return deaths_; }
  void needs_attention(std::weak_ptr<TcpControlChannel> channel) override;
  void negotiate(const std::shared_ptr<TcpControlChannel>& channel, const ControlFrame& frame) override;
  void ended(const TcpControlChannel& channel) override;
  [[nodiscard]] Status pass_on(const TcpControlChannel& channel, const ControlFrame& frame) override;
  void overlay_needs_attention(std::weak_ptr<TcpControlOverlay> overlay) override;
  void overlay_over(AttemptId attempt) override;
  void channel_created() override;
  void channel_destroyed() override;
  void linger(SecureStream socket) override;
  void connect_again(const std::shared_ptr<TcpControlChannel>& channel) override;

  // The caller's side.
  [[nodiscard]] Result<std::shared_ptr<TcpControlChannel>> connect_as_caller(const TcpConnector::Plan& plan);
  [[nodiscard]] Result<Dialed> channel_for(const TcpConnector::Plan& plan);
  [[nodiscard]] Result<bool> propose(const TcpConnector::Plan& plan, const Dialed& dialed);
  [[nodiscard]] Result<std::shared_ptr<TcpControlChannel>> open_channel(const TcpConnector::Plan& plan);
  // The answerer's side.
  [[nodiscard]] Result<std::shared_ptr<TcpControlChannel>> connect_as_answerer(const TcpConnector::Plan& plan);
  void on_accepted(const ConnectKey& caller, SecureStream socket);
  // A caller continues a channel.
  void on_continued(const ConnectKey& caller, SecureStream socket);
  void handle_proposal(const std::shared_ptr<TcpControlChannel>& channel, const ContextPair& which);
  void decline(AttemptId attempt, ContextId mine, const Status& reason);
  static void send_frame(TcpControlChannel& channel, ControlFrameKind kind, const ContextPair& which, const Status& reason = {});

  void add_channel(const std::shared_ptr<TcpControlChannel>& channel);
  [[nodiscard]] std::shared_ptr<TcpControlOverlay> overlay_of(AttemptId attempt);
  [[nodiscard]] std::vector<std::shared_ptr<TcpControlOverlay>> all_overlays();
  void wake_up();
  void handle_attention();
  void beat();
  // Logs a line where a site is cut off, and where it is not any more.
  void tell_outages(const std::vector<std::shared_ptr<TcpControlChannel>>& channels);

  // Connections that are made again at the same time. Each attempt may last seconds.
  static constexpr std::size_t kMostRedials = 16;

  ControlThread& control_;
  TcpConnector& connector_;
  const std::uint32_t generation_ = fork_generation();
  MessageHandlers handlers_;
  DeathCallbacks deaths_;
  std::unique_ptr<HeartbeatTimer> heartbeat_timer_;
  std::map<std::string, std::uint64_t> outages_;  // sites that are cut off, since when; control thread only
  PrivateFd wakeup_;                              // an eventfd: a channel waits for handle_attention()
  Watch wakeup_watch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ControlChannelPeer, Outgoing> outgoing_;
  std::map<ContextPair, Proposal> proposals_;                           // made by this side
  std::map<ContextPair, std::shared_ptr<TcpControlChannel>> proposed_;  // made by peers, until a context here asks
  std::vector<std::weak_ptr<TcpControlChannel>> channels_;
  std::vector<std::weak_ptr<TcpControlChannel>> waiting_;           // for handle_attention()
  std::vector<std::weak_ptr<TcpControlOverlay>> waiting_overlays_;  // the same
  std::map<AttemptId, Overlay> overlays_;                           // this process takes part, or passes on for others
  std::size_t alive_ = 0;                                           // channels that may still call this object
  std::uint64_t next_id_ = 1;
  std::deque<Lingering> lingering_;
  WorkThreads redials_{"seto-redial", kMostRedials};
};

}  // namespace seto

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/channel/control_channels.h"
#include "src/control/channel/control_frames.h"
#include "src/control/channel/death_callbacks.h"
#include "src/control/control_thread.h"
#include "src/control/liveness/peer_liveness.h"
#include "src/control/liveness/peer_silence.h"
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
  // A channel was created.
  virtual void channel_created() = 0;
  // The last call of a channel to its owner. Any thread.
  virtual void channel_destroyed() = 0;
  // Keeps the socket open until the peer has closed too; the peer might lose the final frames otherwise. Any thread.
  virtual void linger(SecureStream socket) = 0;
};

// Limits of bytes that wait to be sent. Beyond the first, asks and answers are dropped, because they are repeated. Beyond the
// second the process counts as lost: hundreds of ranks that report their end to hundreds of others stay far below it.
inline constexpr std::size_t kControlQuestionsLimit = 256 * 1024;
inline constexpr std::size_t kControlQueueLimit = 32 * 1024 * 1024;

class TcpControlChannel final : public ControlChannel, public std::enable_shared_from_this<TcpControlChannel> {
 public:
  static Result<std::shared_ptr<TcpControlChannel>> create(ControlChannelOwner& owner, const ControlChannelPeer& peer,
                                                           SecureStream socket);
  TcpControlChannel(const TcpControlChannel&) = delete;
  TcpControlChannel& operator=(const TcpControlChannel&) = delete;
  ~TcpControlChannel() override;

  [[nodiscard]] const std::atomic<bool>& dead() const override { return dead_; }
  [[nodiscard]] std::string why() const override;
  [[nodiscard]] int descriptor() const override { return socket_.get(); }
  void at_site(std::string_view name, std::uint64_t patience_ms) override;
  [[nodiscard]] std::unique_ptr<OnDeath> on_death(std::function<void()> callback) override;
  void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) override;
  void send_message(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) override;

  [[nodiscard]] const ControlChannelPeer& peer() const { return peer_; }
  // Neither dead nor closed by the other end.
  [[nodiscard]] bool live() const;
  // Any thread, never blocks. Sends nothing if the channel is not live.
  void send(const ControlFrame& frame);

  // On the control thread.
  // The site of the process; empty: that of this one, or unknown.
  [[nodiscard]] std::string site() const;
  // Bytes of the process arrived in the last two periods.
  [[nodiscard]] bool answers();
  // `site_answers`: another process of its site does.
  void beat(bool site_answers);
  // Its silence has lasted for the timeout, and may be that of its whole site.
  [[nodiscard]] bool cut_off() const { return cut_off_; }
  void handle_attention();

 private:
  enum class State : std::uint8_t { live, left, dead };

  TcpControlChannel(ControlChannelOwner& owner, const ControlChannelPeer& peer, SecureStream socket);
  // Returns false if more than `limit` bytes would wait; the frame is dropped then.
  bool queue(const ControlFrame& frame, std::size_t limit);
  void on_events(std::uint32_t events);
  void read_some();
  void take(const ControlFrame& frame);
  void answer(const ControlFrame& frame);
  void leave();
  void hang_up();
  void break_off(int error);
  [[nodiscard]] ssize_t receive(char* to, std::size_t most);
  void die(const std::string& why);
  // With the mutex held. Returns false after an error: the control thread must then read the peer's final frames, if any.
  [[nodiscard]] bool flush();

  ControlChannelOwner& owner_;
  const ControlChannelPeer peer_;
  const std::uint32_t generation_ = fork_generation();
  SecureStream socket_;        // used with the mutex held: sending and receiving share the state of TLS
  ControlFrameReader reader_;  // control thread only
  PeerSilence silence_;        // control thread only
  bool cut_off_ = false;       // control thread only

  mutable std::mutex mutex_;
  State state_ = State::live;
  std::string why_;
  std::string site_;
  std::uint64_t patience_ns_ = 0;
  std::deque<std::string> out_;
  std::size_t out_size_ = 0;
  std::size_t front_sent_ = 0;  // bytes sent of the first element
  int send_error_ = 0;
  std::vector<std::uint64_t> deaths_;
  std::atomic<bool> dead_{false};
  Watch watch_;  // last: destroyed before the members that its handler uses
};

}  // namespace seto

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/channel/control_channel_owner.h"
#include "src/control/channel/control_channels.h"
#include "src/control/channel/control_frames.h"
#include "src/control/channel/sent_frames.h"
#include "src/control/liveness/peer_silence.h"
#include "src/net/tls/secure_stream.h"

namespace seto {

// Limits of bytes that wait to be sent. Beyond the first, asks and answers are dropped, because they are repeated. Beyond the
// second the process counts as lost: hundreds of ranks that report their end to hundreds of others stay far below it.
inline constexpr std::size_t kControlQuestionsLimit = 256 * 1024;
inline constexpr std::size_t kControlQueueLimit = 32 * 1024 * 1024;

class TcpControlChannel final : public ControlChannel, public std::enable_shared_from_this<TcpControlChannel> {
 public:
  // `claim`: with which the connection was opened.
  static Result<std::shared_ptr<TcpControlChannel>> create(ControlChannelOwner& owner, const ControlChannelPeer& peer,
                                                           const Claim& claim, SecureStream socket);
  TcpControlChannel(const TcpControlChannel&) = delete;
  TcpControlChannel& operator=(const TcpControlChannel&) = delete;
  ~TcpControlChannel() override;

  [[nodiscard]] const std::atomic<bool>& dead() const override { return dead_; }
  [[nodiscard]] std::string why() const override;
  void ask_kernel(const std::function<void(int descriptor)>& question) const override;
  void at_site(std::string_view name, std::uint64_t patience_ms) override;
  [[nodiscard]] std::unique_ptr<OnDeath> on_death(std::function<void()> callback) override;
  void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) override;
  void send_message(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) override;

  [[nodiscard]] const ControlChannelPeer& peer() const { return peer_; }
  // Neither dead nor closed by the other end.
  [[nodiscard]] bool live() const;
  // Any thread, never blocks. Sends nothing if the channel is not live.
  void send(const ControlFrame& frame);

  // A connection that breaks is made again (decision 32), once there is a route and the process is at another site. The first
  // route counts. Any thread, as the functions below.
  void set_route(std::shared_ptr<const ControlChannelRoute> route);
  [[nodiscard]] std::shared_ptr<const ControlChannelRoute> route() const;
  // The number of the latest attempt whose connection it took.
  [[nodiscard]] std::uint32_t attempts() const;
  // Whether the connection of this caller is for this channel.
  [[nodiscard]] bool is_continued_by(const ConnectKey& caller) const;
  // Whether connect_again() still has to go on. Once it returns false, the channel asks for it again when it is needed.
  [[nodiscard]] bool needs_connection();
  // A new connection, of this attempt: the control thread takes it soon, unless a later one has come.
  void offer(std::uint32_t attempt, SecureStream socket);
  // The process is lost: "its process has ended", ...
  void die(const std::string& why);
  // The answer to a connection that continues a channel which is no longer live.
  [[nodiscard]] std::string last_words() const;

  // On the control thread.
  // The site of the process; empty: that of this one, or unknown.
  [[nodiscard]] std::string site() const;
  // Bytes of the process arrived in the last two periods.
  [[nodiscard]] bool answers();
  // Since its last sign of life. Control thread only.
  [[nodiscard]] std::uint64_t silent_ns();
  // `site_answers`: another process of its site does.
  void beat(bool site_answers);
  // Its silence has lasted for the timeout, and may be that of its whole site.
  [[nodiscard]] bool cut_off() const { return cut_off_.load(std::memory_order_relaxed); }
  void handle_attention();

 private:
  enum class State : std::uint8_t { live, left, dead };

  struct Offer {
    std::uint32_t attempt = 0;
    SecureStream socket;
  };

  TcpControlChannel(ControlChannelOwner& owner, const ControlChannelPeer& peer, const Claim& claim, SecureStream socket);
  [[nodiscard]] Status watch();
  [[nodiscard]] std::uint64_t kernels_patience_ms() const;  // with the mutex held
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
  // Decision 32, on the control thread.
  void count(ControlFrameKind kind);
  void peer_heard(std::uint64_t frames);
  [[nodiscard]] bool survives();
  void lose_connection(const std::string& why);
  void ask_for_connection();
  void take_offer();
  void resume(std::uint64_t frames);
  // With the mutex held. Returns false after an error: the control thread must then read the peer's final frames, if any.
  [[nodiscard]] bool flush();

  ControlChannelOwner& owner_;
  const ControlChannelPeer peer_;
  const Claim claim_;
  const std::uint32_t generation_ = fork_generation();
  SecureStream socket_;        // used with the mutex held: sending and receiving share the state of TLS
  ControlFrameReader reader_;  // control thread only
  PeerSilence silence_;        // control thread only
  LastReceived site_silent_;   // when no other process of its site answered; control thread only
  std::atomic<bool> cut_off_{false};
  std::atomic<bool> doubtful_{false};  // silent for half of the timeout: the connection may be the reason
  std::uint64_t heard_ = 0;            // counted frames that arrived; control thread only
  std::uint64_t told_heard_ = 0;       // the peer knows of so many; control thread only

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
  SentFrames sent_;
  std::shared_ptr<const ControlChannelRoute> route_;
  bool disconnected_ = false;  // the connection broke, and there is no new one yet
  bool resuming_ = false;      // a new connection, over which the peer has not said yet what it has got
  bool connecting_ = false;    // connect_again() is under way
  std::optional<Offer> offer_;
  std::uint32_t taken_attempt_ = 0;
  std::atomic<bool> dead_{false};
  Watch watch_;  // last: destroyed before the members that its handler uses
};

}  // namespace seto

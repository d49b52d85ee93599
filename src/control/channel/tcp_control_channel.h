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
#include "src/control/callback_registry.h"
#include "src/control/control_thread.h"
#include "src/control/liveness/peer_liveness.h"
#include "src/control/channel/control_frames.h"
#include "src/control/channel/control_channels.h"

namespace seto {

class TcpWire;

// Who is at the other end, and under which key.
struct WirePeer {
  KeyId key{};
  Token process{};
  auto operator<=>(const WirePeer&) const = default;
};

// Callbacks of deaths, of all wires.
using Deaths = CallbackShelf<std::uint64_t, std::function<void()>>;

// What a wire needs of what holds the wires of the process.
class WireKeeper {
 public:
  virtual ~WireKeeper() = default;
  [[nodiscard]] virtual ControlThread& control() = 0;
  [[nodiscard]] virtual const Pulse& pulse() = 0;
  [[nodiscard]] virtual Mailboxes& mailboxes_of_wires() = 0;
  [[nodiscard]] virtual Deaths& deaths() = 0;
  // Has the control thread call attend() soon. Any thread.
  virtual void needs_attention(std::weak_ptr<TcpWire> wire) = 0;
  // On the control thread: join, joined or refused came; and: it is dead, or the other end has left it.
  virtual void negotiate(const std::shared_ptr<TcpWire>& wire, const WireFrame& frame) = 0;
  virtual void ended(const TcpWire& wire) = 0;
  // A wire exists from now on.
  virtual void made() = 0;
  // The last thing a wire says to its keeper. Any thread.
  virtual void gone() = 0;
  // Until the other end has closed too: closed at once, it might not hear the last words. Any thread.
  virtual void linger(PrivateFd socket) = 0;
};

// Bytes that wait to be sent. Beyond the first limit questions and answers are dropped, for who wants to know asks again. Beyond
// the second the process is lost: hundreds of ranks here that tell hundreds there how they ended stay far below.
inline constexpr std::size_t kWireQuestionsLimit = 256 * 1024;
inline constexpr std::size_t kWireQueueLimit = 32 * 1024 * 1024;

class TcpWire final : public Wire, public std::enable_shared_from_this<TcpWire> {
 public:
  static Result<std::shared_ptr<TcpWire>> create(WireKeeper& keeper, const WirePeer& peer, PrivateFd socket);
  TcpWire(const TcpWire&) = delete;
  TcpWire& operator=(const TcpWire&) = delete;
  ~TcpWire() override;

  [[nodiscard]] const std::atomic<bool>& dead() const override { return dead_; }
  [[nodiscard]] std::string why() const override;
  [[nodiscard]] std::unique_ptr<OnDeath> on_death(std::function<void()> callback) override;
  void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) override;
  void news(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) override;

  [[nodiscard]] const WirePeer& peer() const { return peer_; }
  // Neither dead nor left by the other end.
  [[nodiscard]] bool live() const;
  // Any thread, never blocks. Of a wire that is not live nothing comes.
  void send(const WireFrame& frame);

  // On the control thread.
  void beat();
  void attend();

 private:
  enum class State : std::uint8_t { live, left, dead };

  TcpWire(WireKeeper& keeper, const WirePeer& peer, PrivateFd socket);
  // False: too much waits already, and it was not taken.
  bool queue(const WireFrame& frame, std::size_t limit);
  void on_events(std::uint32_t events);
  void read_some();
  void take(const WireFrame& frame);
  void answer(const WireFrame& frame);
  void leave();
  void hang_up();
  void break_off(int error);
  void die(const std::string& why);
  // Mutex held. False: it failed, and the control thread is to look, for the last words of the peer may be there to read.
  [[nodiscard]] bool flush();

  WireKeeper& keeper_;
  const WirePeer peer_;
  const std::uint32_t generation_ = fork_generation();
  PrivateFd socket_;
  WireFrameReader reader_;  // the control thread's
  Silence silence_;         // the control thread's

  mutable std::mutex mutex_;
  State state_ = State::live;
  std::string why_;
  std::deque<std::string> out_;
  std::size_t out_size_ = 0;
  std::size_t front_sent_ = 0;  // bytes of the first
  int send_error_ = 0;
  std::vector<std::uint64_t> deaths_;
  std::atomic<bool> dead_{false};
  Watch watch_;  // last: gone before what its handler uses
};

}  // namespace seto

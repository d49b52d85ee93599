#pragma once

#include <sys/types.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/handshake.h"

namespace seto {

// Callers that have not said hello: so many at most, and each has so long. Who waits beyond that waits in the kernel's queue.
inline constexpr std::size_t kUngreetedLimit = 64;
inline constexpr int kUngreetedMs = 2'000;
// Callers whose context has not asked for them yet.
inline constexpr std::size_t kParkedLimit = 65'536;
// Attempts that contexts of this process gave up, and whose latecomers are still told why. Only inits of this process that fail
// add to them, so a peer cannot crowd out what others need; and as all ranks of one communicator may be contexts of one process,
// and fail together, it holds a few of those. Who asks for one that is forgotten all the same is told nothing, as for one that
// lives: it waits until its own deadline.
inline constexpr std::size_t kDeclinedLimit = 4'096;

// Who calls whom.
struct CallKey {
  Token caller_process{};
  ContextId caller = 0;
  ContextId answerer = 0;
  AttemptId attempt = 0;
  auto operator<=>(const CallKey&) const = default;
};

// The listener of this process, served by the control thread: hears the hello of each caller, and parks it until the context
// that it wants takes it. Strangers are closed. When descriptors run out callers are told, and so is whoever awaits them.
class Reception final {
 public:
  static Result<std::unique_ptr<Reception>> create(ControlThread& control, const std::string& socket_name, const Token& token);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  ~Reception();

  // The socket of a caller that proved who it is. Any thread. Code::timeout if it has not come by `until`.
  [[nodiscard]] Result<PrivateFd> take(const CallKey& key, Deadline until);

  // Whoever calls this context in this attempt, or asks whether it will call, is told this text from now on. Any thread.
  void decline(AttemptId attempt, ContextId context, const Status& reason);

 private:
  struct Ungreeted {
    PrivateFd fd;
    Watch watch;
    Deadline until = Deadline::after_ms(kUngreetedMs);
    bool refused = false;  // sits on the reserve: it learns that there are no descriptors, and goes
  };
  // One datagram, or why there is none. A byte too long: it is none of ours.
  struct Words {
    std::array<char, sizeof(HandshakeMessage) + 1> bytes;
    ssize_t size = 0;
  };
  struct Parked {
    std::uint64_t id = 0;
    PrivateFd fd;
    Watch watch;
  };
  struct Attempt {
    AttemptId attempt;
    ContextId context;
    auto operator<=>(const Attempt&) const = default;
  };

  Reception(ControlThread& control, const Token& token) : control_(control), token_(token) {}

  // Nothing: it has said nothing yet.
  static std::optional<Words> words_of(const PrivateFd& fd);

  // All on the control thread, or before it knows of this object, with the mutex held.
  [[nodiscard]] Status listen();
  void accept_all();
  [[nodiscard]] bool accept_one();
  void admit(PrivateFd fd, bool on_reserve);
  void hear(std::uint64_t id);
  void hear(const Words& words, Ungreeted one);
  void park(const CallKey& key, PrivateFd fd);
  void refuse(const CallKey& key, const PrivateFd& fd, const Status& reason) const;
  void greet(const HandshakeMessage& hello, Ungreeted one);
  void forget(std::uint64_t id);
  void pause();
  void restore();
  void tick();
  void set_timer(long period_ms);

  ControlThread& control_;
  const Token token_;
  PrivateFd listener_;
  PrivateFd timer_;
  PrivateFd reserve_;  // given up to accept a caller when no other descriptor is left

  std::mutex mutex_;
  std::condition_variable arrived_;
  bool closing_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Ungreeted> ungreeted_;
  std::map<CallKey, Parked> parked_;
  std::set<CallKey> refused_;
  std::map<Attempt, Status> declined_;
  std::deque<Attempt> declined_order_;  // the oldest first
  Watch listening_;
  Watch ticking_;
};

}  // namespace seto

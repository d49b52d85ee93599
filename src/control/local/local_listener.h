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

// The most connections without a hello, and the time that each has. More connections wait in the kernel's queue.
inline constexpr std::size_t kUnauthenticatedLimit = 64;
inline constexpr int kUnauthenticatedMs = 2'000;
// The most authenticated connections that their context has not taken yet.
inline constexpr std::size_t kParkedLimit = 65'536;
// The most remembered declined attempts, whose late callers still get the reason. Only failed inits of this process add entries,
// so a peer cannot displace the entries of others. The limit holds several communicators whose ranks are all contexts of one
// process and fail together. For an attempt that is no longer remembered the caller gets no answer and waits until its own
// deadline, as for an attempt that is still open.
inline constexpr std::size_t kDeclinedLimit = 4'096;

// Identifies a connection: the caller's process and context, the answerer's context, and the attempt.
struct CallKey {
  Token caller_process{};
  ContextId caller = 0;
  ContextId answerer = 0;
  AttemptId attempt = 0;
  auto operator<=>(const CallKey&) const = default;
};

// The local listener of this process, on the control thread: reads the hello of each connection and parks the connection until
// the answering context takes it. Connections without a valid hello are closed. Without free descriptors, callers are refused
// with that reason, and a context that waits for one gets it too.
class LocalListener final {
 public:
  static Result<std::unique_ptr<LocalListener>> create(ControlThread& control, const std::string& socket_name,
                                                       const Token& token);
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;
  ~LocalListener();

  // Returns the socket of that authenticated caller; Code::timeout if it has not connected by `until`. Any thread.
  [[nodiscard]] Result<PrivateFd> take(const CallKey& key, Deadline until);

  // From now on refuses connections to this context in this attempt, and probes for it, with this reason. Any thread.
  void decline(AttemptId attempt, ContextId context, const Status& reason);

 private:
  struct Unauthenticated {
    PrivateFd fd;
    Watch watch;
    Deadline until = Deadline::after_ms(kUnauthenticatedMs);
    bool refused = false;  // uses the reserve descriptor: it will be refused and closed
  };
  // One received datagram, or the result of recv(). One byte longer than a message, so that a longer one is detected.
  struct Datagram {
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

  LocalListener(ControlThread& control, const Token& token) : control_(control), token_(token) {}

  // Returns nothing if no datagram has arrived yet.
  static std::optional<Datagram> receive_datagram(const PrivateFd& fd);

  // All with the mutex held, on the control thread or before this object is registered there.
  [[nodiscard]] Status listen();
  void accept_all();
  [[nodiscard]] bool accept_one();
  void admit(PrivateFd fd, bool on_reserve);
  void handle(std::uint64_t id);
  void handle(const Datagram& datagram, Unauthenticated one);
  void park(const CallKey& key, PrivateFd fd);
  void refuse(const CallKey& key, const PrivateFd& fd, const Status& reason) const;
  void handle_hello(const HandshakeMessage& hello, Unauthenticated one);
  void forget(std::uint64_t id);
  void pause();
  void restore();
  void tick();
  void set_timer(long period_ms);

  ControlThread& control_;
  const Token token_;
  PrivateFd listener_;
  PrivateFd timer_;
  PrivateFd reserve_;  // closed to accept a connection when no other descriptor is free

  std::mutex mutex_;
  std::condition_variable arrived_;
  bool closing_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Unauthenticated> unauthenticated_;
  std::map<CallKey, Parked> parked_;
  std::set<CallKey> refused_;
  std::map<Attempt, Status> declined_;
  std::deque<Attempt> declined_order_;  // oldest first
  Watch listening_;
  Watch ticking_;
};

}  // namespace seto

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/network/job_keys.h"
#include "src/control/network/accepted_peers.h"
#include "src/net/auth_handshake.h"
#include "src/net/unauthenticated_log.h"
#include "src/net/tcp_socket.h"

namespace seto {

// Callers that have proved nothing yet: so many at most, each for so long, and so many from one address that have not even named
// a key of ours. Beyond that the oldest that has named none goes. Where all have, who comes waits in the kernel's queue until one
// of them is done or has had its grace.
inline constexpr std::size_t kHalfOpenLimit = 64;
inline constexpr std::size_t kHalfOpenLimitOfAddress = 16;
inline constexpr int kHalfOpenMs = 2'000;
inline constexpr int kHalfOpenGraceMs = 500;

// The TCP listeners of this process, served by the control thread: hears whoever calls until he has proved that he belongs to one
// of its jobs, and hands him to the visitors. Reads so many bytes of anybody as a handshake has, and no more.
class Porch final {
 public:
  static Result<std::unique_ptr<Porch>> create(ControlThread& control, TcpListener listener, const Token& self, KeyRing& keys,
                                               Visitors& visitors);
  Porch(const Porch&) = delete;
  Porch& operator=(const Porch&) = delete;
  ~Porch();

  // Who has named this key may go on. Any thread.
  void key_came(const KeyId& id);

 private:
  struct HalfOpen {
    PrivateFd fd;
    Watch watch;
    SocketAddress from{};
    Deadline until = Deadline::after_ms(kHalfOpenMs);
    Deadline grace = Deadline::after_ms(kHalfOpenGraceMs);
    AnswererHandshake handshake;
    bool on_reserve = false;
    // It named a key of ours, and was challenged.
    [[nodiscard]] bool named() const { return handshake.stage() == AnswererHandshake::Stage::proof; }
  };
  using Crowd = std::map<std::uint64_t, HalfOpen>;  // the oldest first
  enum class Heard : std::uint8_t { nothing_yet, gone, proof };

  Porch(ControlThread& control, const Token& self, KeyRing& keys, Visitors& visitors)
      : control_(control), self_(self), keys_(keys), visitors_(visitors) {}

  // On the control thread, with no lock held. Each lets go of its own registration and goes on: so the destructor waits for it.
  class Busy;
  void accept_some(std::size_t listener);
  void hear_one(std::uint64_t id);
  // On the control thread, or before it knows of this object, with the mutex held.
  [[nodiscard]] Status listen();
  [[nodiscard]] PrivateFd next_caller(std::size_t listener, bool& on_reserve);
  [[nodiscard]] std::uint64_t admit(PrivateFd fd, bool on_reserve);
  [[nodiscard]] bool make_room();
  void make_room_of(const SocketAddress& from);
  [[nodiscard]] Heard hear(HalfOpen& one, std::string& why);
  void look_for_key(HalfOpen& one);
  // With no reason it is not worth a line: whoever hangs up, as members do that found another way.
  void see_off(Crowd::iterator which, const std::string& why);
  void make_way(Crowd::iterator which, const std::string& why);
  void pause();
  void restore();
  void tick();
  void set_timer(long period_ms);

  ControlThread& control_;
  const Token self_;
  KeyRing& keys_;
  Visitors& visitors_;
  TcpListener listener_;
  PrivateFd timer_;
  PrivateFd reserve_;  // given up to accept a caller when no other descriptor is left

  std::mutex mutex_;
  std::condition_variable idle_;
  int busy_ = 0;
  bool closing_ = false;
  std::uint64_t next_id_ = 1;
  Crowd crowd_;
  StrangerLog log_;
  std::uint64_t hasty_ = 0;  // seen off before they had much time
  std::vector<Watch> listening_;
  Watch ticking_;
};

}  // namespace seto

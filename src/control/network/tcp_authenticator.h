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
#include "src/control/network/accepted_peers.h"
#include "src/control/network/job_keys.h"
#include "src/net/auth_claim.h"
#include "src/net/tcp_socket.h"
#include "src/net/tls/auth_channel.h"
#include "src/net/unauthenticated_log.h"

namespace seto {

// Limits of connections that are not authenticated yet: their number, their time, and the number from one address that have not
// named a known key. Beyond a limit the oldest connection that has named no known key is closed. If all have named one, new
// connections wait in the kernel's queue until one of them ends or its grace time is over. A hello that was overheard names no
// key, because it came before or was meant for another process; it is answered like others, since the same hello may have come
// from the observer first.
inline constexpr std::size_t kHalfOpenLimit = 64;
inline constexpr std::size_t kHalfOpenLimitOfAddress = 16;
inline constexpr int kHalfOpenMs = 2'000;
inline constexpr int kHalfOpenGraceMs = 500;

// The TCP listeners of this process, on the control thread: authenticates each accepted connection and passes it to
// AcceptedPeers. Reads only as many bytes as a handshake has. RendezvousServer does the same job with IncomingHandshake and
// PendingConnections: both stay, because this one serves many keys on an epoll loop, parks peers and watches the descriptor
// reserve, while the rendezvous has one key and a thread of its own. The handshake itself (src/net/auth_handshake.h) is shared.
class TcpAuthenticator final {
 public:
  struct Identity {
    Token process{};
    TlsChoice tls;
  };
  static Result<std::unique_ptr<TcpAuthenticator>> create(ControlThread& control, TcpListener listener, const Identity& self,
                                                          JobKeys& keys, AcceptedPeers& accepted);
  TcpAuthenticator(const TcpAuthenticator&) = delete;
  TcpAuthenticator& operator=(const TcpAuthenticator&) = delete;
  ~TcpAuthenticator();

  // Continues the handshakes that wait for this key. Any thread.
  void key_added(const Secret& key);

 private:
  using Stage = AnswererHandshake::Stage;
  struct HalfOpen {
    AnswererChannel channel;
    Watch watch;
    SocketAddress from{};
    Deadline until = Deadline::after_ms(kHalfOpenMs);
    Deadline grace = Deadline::after_ms(kHalfOpenGraceMs);
    bool on_reserve = false;
    KeyId key{};  // valid once the challenge was sent
    // The hello may have been overheard.
    bool doubtful = false;
    // The peer named a known key, and the challenge was sent.
    [[nodiscard]] bool named() const { return (stage() == Stage::channel || stage() == Stage::proof) && !doubtful; }
    [[nodiscard]] Stage stage() const { return channel.handshake().stage(); }
  };
  using PendingConnections = std::map<std::uint64_t, HalfOpen>;  // oldest first
  enum class ReadResult : std::uint8_t { nothing_yet, closed, proof };

  TcpAuthenticator(ControlThread& control, const Identity& self, JobKeys& keys, AcceptedPeers& accepted)
      : control_(control), self_(self), keys_(keys), accepted_(accepted) {}

  // On the control thread, with no lock held. Each may remove its own registration and continue, so the destructor waits for it.
  class Busy;
  void accept_some(std::size_t listener);
  void on_readable(std::uint64_t id);
  // With the mutex held, on the control thread or before this object is registered there.
  [[nodiscard]] Status listen();
  [[nodiscard]] PrivateFd accept_next(std::size_t listener, bool& on_reserve);
  [[nodiscard]] std::uint64_t admit(PrivateFd fd, bool on_reserve);
  [[nodiscard]] bool make_room();
  void make_room_from(const SocketAddress& from);
  [[nodiscard]] ReadResult read_handshake(HalfOpen& one, std::string& why);
  bool look_up_key(HalfOpen& one);
  void set_key(HalfOpen& one, const Secret& key);
  // An empty reason is not logged: members also close a connection when another address was faster.
  void close_pending(PendingConnections::iterator which, const std::string& why);
  void evict(PendingConnections::iterator which, const std::string& why);
  void pause();
  void restore();
  void tick();
  void set_timer(long period_ms);

  ControlThread& control_;
  const Identity self_;
  JobKeys& keys_;
  AcceptedPeers& accepted_;
  TcpListener listener_;
  PrivateFd timer_;
  PrivateFd reserve_;  // closed to accept a connection when no other descriptor is free

  std::mutex mutex_;
  std::condition_variable idle_;
  int busy_ = 0;
  bool closing_ = false;
  std::uint64_t next_id_ = 1;
  PendingConnections pending_;
  SeenHellos seen_;
  UnauthenticatedLog log_;
  std::uint64_t evicted_early_ = 0;  // closed before their grace time was over
  std::vector<Watch> listening_;
  Watch ticking_;
};

}  // namespace seto

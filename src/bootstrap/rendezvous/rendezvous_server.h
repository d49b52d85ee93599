#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/pending_connections.h"
#include "src/bootstrap/rendezvous/server_connection.h"
#include "src/bootstrap/rendezvous/sessions.h"
#include "src/bootstrap/unique_id.h"
#include "src/net/unauthenticated_log.h"

namespace seto {

// Limits of connections that have not named the key of this rendezvous. More than this number, or than a quarter of the process's
// descriptors, wait in the kernel's queue. After its turn a connection is closed if others wait.
inline constexpr std::size_t kRendezvousUnauthenticatedLimit = 64;
inline constexpr int kUnauthenticatedTurnMs = 250;
inline constexpr int kRendezvousUnauthenticatedMs = 2'000;
// Limits of connections that have named the key but have not proved it yet. They are members that wait for a core of a busy
// machine, so they have more time. A hello that was overheard and comes again does not count.
inline constexpr std::size_t kKeyKnownLimit = 256;
inline constexpr int kKeyKnownTurnMs = 2'000;
inline constexpr int kKeyKnownMs = 20'000;
// The time for which an ending process waits to deliver the reasons of failures, also to ranks that connect late because they
// were started wrongly.
inline constexpr int kShutdownMs = 1'000;

// The server of the ranks that share an id, on a thread of the process that made the id. A server for one communicator ends by
// itself when all ranks have joined and left, or some time after a failure. A server for a job ends when it is destroyed.
class RendezvousServer final {
 public:
  struct Options {
    Secret key;  // the key that members prove
    UniqueId::Serves serves = UniqueId::Serves::communicator;
    Deadline idle_until = Deadline::never();  // for a communicator: the time by which a rank must have joined
    std::optional<Secret> presence = {};      // proved to a peer that only asks whether this server runs
    int shutdown_ms = kShutdownMs;
    TlsChoice tls = {};
  };
  static Result<std::unique_ptr<RendezvousServer>> start(Listeners listeners, Options options);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  // Blocks for shutdown_ms at most.
  ~RendezvousServer();

  // Starts the shutdown. Called for several servers before their destructors, it lets them all end at the same time.
  void stop();

  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Bytes received and sent so far, also on unauthenticated connections. The tests hold the root to a limit with it. Any thread
  // may call it.
  [[nodiscard]] std::uint64_t traffic() const { return traffic_.load(std::memory_order_relaxed); }

 private:
  RendezvousServer(Listeners listeners, Options options);

  void serve();
  [[nodiscard]] bool ended();
  [[nodiscard]] bool awaits_late_ranks() const;
  void wait_for_events();
  [[nodiscard]] int sleep_ms() const;
  void look_at_deadlines();

  void accept_connections(std::size_t listener);
  void make_room(PendingConnections& pending);
  void close_late(PendingConnections& pending);
  void out_of_descriptors();
  void listen_or_not();

  void advance(ServerConnection& connection);
  void advance_handshake(ServerConnection& connection);
  void read_from(ServerConnection& connection);
  void handle(ServerConnection& connection, const Frame& frame);
  void handle_hello(ServerConnection& connection, const Frame& frame);
  void reject(ServerConnection& connection, const Status& reason);
  void give_result(ServerConnection& connection);
  void reject_malformed(ServerConnection& connection);
  void log_unauthenticated(const std::string& who, const std::string& what);

  void announce(Session& session);
  void announce_result(Session& session, const SessionState::Announcement& announcement);
  [[nodiscard]] std::string ready_for(const Session& session, Rank rank) const;
  void send_to(Session& session, Rank rank, std::shared_ptr<const std::string> bytes);
  void flush(ServerConnection& connection);
  void count(ServerConnection& connection, std::uint64_t bytes);
  void watch(ServerConnection& connection);
  void sweep();
  void close_session(Session& session);

  Listeners listeners_;
  const Options options_;
  Sessions sessions_;
  std::mutex end_mutex_;  // guards the next two, which stop() and a server that ends by itself use
  PrivateFd stop_;
  PrivateFd poll_;
  std::map<std::uint64_t, std::unique_ptr<ServerConnection>> connections_;
  PendingConnections unauthenticated_;
  PendingConnections key_known_;
  SeenHellos seen_;
  std::set<std::uint64_t> closed_;
  std::uint64_t next_id_ = 0;
  UnauthenticatedLog unauthenticated_log_;
  std::string unproven_;  // the last connection with another secret, or that did not fit, since a session was full; empty: none
  bool listening_ = false;
  Deadline pause_until_ = Deadline::after_ms(0);  // descriptors have run out
  bool stopping_ = false;
  bool failed_ = false;
  Deadline end_until_ = Deadline::after_ms(0);  // valid once stopping or failed
  std::atomic<std::uint64_t> traffic_{0};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace seto

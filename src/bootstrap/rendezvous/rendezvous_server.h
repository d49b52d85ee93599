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
#include "src/bootstrap/rendezvous/pending_connections.h"
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/sessions.h"
#include "src/bootstrap/rendezvous/server_connection.h"
#include "src/bootstrap/unique_id.h"
#include "src/net/unauthenticated_log.h"

namespace seto {

// Strangers: connections that have not named the key of this rendezvous. More than these, or than a quarter of the process's
// descriptors, wait in the kernel's queue; one that has had its turn makes room for the next.
inline constexpr std::size_t kStrangerLimit = 64;
inline constexpr int kStrangerTurnMs = 250;
inline constexpr int kStrangerMs = 2'000;
// Guests: those that have, and have not yet proved that they hold it. They are members that wait for a core of a crowded machine,
// or somebody who has overheard one: so they have longer.
inline constexpr std::size_t kGuestLimit = 256;
inline constexpr int kGuestTurnMs = 2'000;
inline constexpr int kGuestMs = 20'000;
// How long an ending process waits to deliver its last words, and to be asked for them by ranks that were started wrongly with
// it.
inline constexpr int kLastWordsMs = 1'000;

// The rendezvous of the ranks that share an id, on a thread of the process that made it. One for a communicator ends by itself
// when all ranks have come and gone, or some time after a failure; one for a job when it is destroyed.
class RendezvousServer final {
 public:
  struct Options {
    Secret key;  // that members prove
    UniqueId::Serves serves = UniqueId::Serves::communicator;
    Deadline idle_until = Deadline::never();  // for a communicator: when somebody must have come
    std::optional<Secret> presence = {};      // that is proved to whoever only asks who is here
    int last_words_ms = kLastWordsMs;
  };
  static Result<std::unique_ptr<RendezvousServer>> start(Doors doors, Options options);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  // Blocks for last_words_ms at most.
  ~RendezvousServer();

  // The destructor has less to wait for then: of several, all end at the same time.
  void stop();

  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  // Bytes received and sent so far, handshakes and strangers included: for the tests, which hold the root to a limit. Any thread.
  [[nodiscard]] std::uint64_t traffic() const { return traffic_.load(std::memory_order_relaxed); }

 private:
  RendezvousServer(Doors doors, Options options);

  void serve();
  [[nodiscard]] bool ended();
  [[nodiscard]] bool awaits_latecomers() const;
  void wait_for_events();
  [[nodiscard]] int sleep_ms() const;
  void look_at_deadlines();

  void knock(std::size_t door);
  void make_room(Crowd& crowd);
  void close_late(Crowd& crowd);
  void out_of_descriptors();
  void listen_or_not();

  void advance(ServerConnection& connection);
  void advance_stranger(ServerConnection& connection);
  void read_from(ServerConnection& connection);
  void handle(ServerConnection& connection, const Frame& frame);
  void greet(ServerConnection& connection, const Frame& frame);
  void turn_away(ServerConnection& connection, const Status& reason);
  void give_result(ServerConnection& connection);
  void drop_garbage(ServerConnection& connection);
  void say_of_stranger(const std::string& who, const std::string& what);

  void announce(Gathering& gathering);
  void announce_result(Gathering& gathering, const RendezvousRoom::Announcement& announcement);
  [[nodiscard]] std::string ready_for(const Gathering& gathering, Rank rank) const;
  void say(Gathering& gathering, Rank rank, std::shared_ptr<const std::string> bytes);
  void flush(ServerConnection& connection);
  void count(ServerConnection& connection, std::uint64_t bytes);
  void watch(ServerConnection& connection);
  void sweep();
  void close_gathering(Gathering& gathering);

  Doors doors_;
  const Options options_;
  Gatherings gatherings_;
  std::mutex end_mutex_;  // who ends the server, and the server that ends by itself, over the next two
  PrivateFd stop_;
  PrivateFd poll_;
  std::map<std::uint64_t, std::unique_ptr<ServerConnection>> connections_;
  Crowd strangers_;
  Crowd guests_;
  std::set<std::uint64_t> gone_;
  std::uint64_t next_id_ = 0;
  StrangerLog stranger_log_;
  std::string unproven_;  // since all ranks of some init were there: who came with another secret, last
  bool listening_ = false;
  Deadline pause_until_ = Deadline::after_ms(0);  // descriptors have run out
  bool stopping_ = false;
  bool failed_ = false;
  Deadline end_until_ = Deadline::after_ms(0);  // once stopping or failed
  std::atomic<std::uint64_t> traffic_{0};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace seto

#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/bootstrap/frames.h"
#include "src/bootstrap/rendezvous_room.h"
#include "src/bootstrap/unique_id.h"

namespace seto {

// Strangers: connections that have not shown the token. More than these wait in the kernel's queue; each has this long.
inline constexpr int kStrangerLimit = 64;
inline constexpr int kStrangerMs = 2'000;
// How long a failed rendezvous stays to tell latecomers the reason, and an ending process waits to deliver its last words.
inline constexpr int kLatecomerMs = 10'000;
inline constexpr int kLastWordsMs = 1'000;

// The rendezvous of one communicator between ranks of one machine, on a thread of the process that made the unique id. Ends by
// itself when all ranks have come and gone, or some time after a failure.
class RendezvousServer final {
 public:
  static Result<std::unique_ptr<RendezvousServer>> start(const UniqueId& id, Deadline idle_until);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  // Blocks for kLastWordsMs at most.
  ~RendezvousServer();

  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  struct Connection {
    PrivateFd fd;
    FrameReader reader{kHelloBodySize};
    Deadline hello_until = Deadline::after_ms(kStrangerMs);
    Rank rank = -1;
    std::deque<std::shared_ptr<const std::string>> out;  // one copy of a result serves every rank
    std::size_t out_offset = 0;
    bool last_words = false;  // closed once `out` is written
    bool gone = false;
  };

  RendezvousServer(const UniqueId& id, Deadline idle_until) : room_(id.token, idle_until) {}

  void serve();
  [[nodiscard]] bool ended();
  void wait_for_events();
  [[nodiscard]] int sleep_ms() const;
  [[nodiscard]] int stranger_count() const;
  [[nodiscard]] bool everything_sent() const;
  void accept_all();
  void read_from(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void drop_garbage(Connection& connection);
  void broadcast();
  void flush(Connection& connection);
  void sweep();

  PrivateFd listener_;
  PrivateFd stop_;
  RendezvousRoom room_;
  std::vector<std::unique_ptr<Connection>> connections_;
  bool stopping_ = false;
  bool failed_ = false;
  Deadline end_until_ = Deadline::after_ms(0);  // once stopping or failed
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

// Makes an id and starts its rendezvous in this process, which must live until every rank has its communicator. Ids not used by
// `idle_until` end. Any thread.
[[nodiscard]] Result<UniqueIdBytes> create_unique_id(Deadline idle_until);

}  // namespace seto

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/result.h"
#include "transports/tcp/receive_buffers.h"
#include "transports/tcp/link.h"

namespace seto::tcp {

// The links of one context. Whoever holds the context's token pumps; others only add, send and take away: one lock for all of it,
// which costs 20 ns where a frame costs a microsecond.
class Domain final {
 public:
  static Result<std::unique_ptr<Domain>> create();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  // What was sent is delivered first, or its receiver lost, for at most kLastWordsMs; unless nobody awaits it any more.
  ~Domain();
  // Said when a communicator ends; the last one decides. Of one that has failed, the members have heard why on another plane.
  void hurry(bool failed) { hurried_.store(failed, std::memory_order_relaxed); }

  Result<std::shared_ptr<Link>> add(Link::Setup setup);

  // Reads and writes whatever can be. True: something moved.
  bool pump();
  // Output waits for room in a socket: somebody has to pump.
  [[nodiscard]] bool unsent() const { return unsent_.load(std::memory_order_acquire); }
  [[nodiscard]] bool empty() const { return sockets_.load(std::memory_order_relaxed) == 0; }

  // Readable when there is something to pump. Before sleeping on it: prepare_to_sleep.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  void prepare_to_sleep();

  // Who sends from outside a pump says so when it is done, the lock held.
  void note_output();
  // Called, with the lock held, when output begins to wait: somebody has to pump, though nobody calls.
  void on_output(std::function<void()> notify) { on_output_ = std::move(notify); }

  [[nodiscard]] std::mutex& lock() { return mutex_; }
  [[nodiscard]] Landing& landing() { return landing_; }

 private:
  static constexpr int kLastWordsMs = 2'000;
  // Up to so many sockets are read one after another; of more the kernel is asked which have something.
  static constexpr std::size_t kReadInTurn = 2;

  struct Member {
    std::shared_ptr<Link> link;
    std::vector<bool> listens_for_room;  // by socket
  };

  Domain() = default;
  bool pump_ready();
  void set_unsent(bool unsent);
  void drop_unused();
  void deliver();

  std::mutex mutex_;
  Fd epoll_;
  Landing landing_;
  std::vector<Member> links_;
  std::atomic<std::size_t> sockets_{0};
  std::atomic<bool> unsent_{false};
  std::atomic<bool> hurried_{false};
  std::function<void()> on_output_;
};

}  // namespace seto::tcp

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/clock.h"
#include "src/base/far_link.h"
#include "src/base/fd.h"
#include "src/base/result.h"
#include "transports/tcp/flow/window_budget.h"
#include "transports/tcp/link/link.h"
#include "transports/tcp/link/receive_buffers.h"

namespace seto::tcp {

// The connections of one context. The holder of the context's token pumps; other threads only add, queue and remove. One lock
// covers everything: it costs 20 ns where a frame costs a microsecond.
class Domain final {
 public:
  static Result<std::unique_ptr<Domain>> create();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();
  // Waits until queued data is delivered or its receiver is lost, for at most kLastWordsMs, and kLastOpeningMs for connections
  // that data waits for; not at all after hurry(true). From then on the domain has no connections, and opens none.
  void close();
  // Called when a communicator ends; the last call counts. The members of a failed communicator know the reason from the control
  // plane and need no more data.
  void hurry(bool failed) { hurried_.store(failed, std::memory_order_relaxed); }

  // Links that are added later use all their routes (Link::Setup::together).
  void use_routes_together(bool together) { together_ = together; }
  // Before links are added. Rails of its links are pipes of this maker, which outlives close(). Null: there are none.
  Status use_pipes(PipeMaker* pipes);
  Result<std::shared_ptr<Link>> add(Link::Setup setup);
  // The sockets of a link of this domain that had none. The caller holds the lock. A link that broke, or that has its sockets,
  // closes them. A failure breaks the link.
  Status open(Link& link, std::vector<SecureStream> sockets);
  // A new socket or rail for a path of a link of this domain, at the attempt of that number to open it: the next pump takes it.
  // If the path is not known to be broken here, it is then. The caller holds the lock, and wakes a thread that sleeps. False: the
  // link takes no paths any more, or has one of a later attempt.
  bool take_path(Link& link, std::size_t path, PathPipe pipe, std::uint32_t attempt);

  // Link::leave_path. Likewise.
  void leave_path(Link& link, std::size_t path);

  // Reads and writes as far as the sockets allow.
  Moved pump();
  // Output waits for room in a socket: a thread has to pump.
  [[nodiscard]] bool unsent() const { return unsent_.load(std::memory_order_acquire); }
  // Not only because peers have not acknowledged everything, or because they are told later what has arrived.
  [[nodiscard]] bool sends_now() const { return sends_now_.load(std::memory_order_acquire); }
  [[nodiscard]] bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  // Readable when there is something to pump. Call prepare_to_sleep() before sleeping on it.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  void prepare_to_sleep();

  // Called after frames were queued outside of a pump. The caller holds the lock.
  void note_output();
  // `notify` is called, with the lock held, when output begins to wait: then a thread has to pump even if no call is active.
  void on_output(std::function<void()> notify) { on_output_ = std::move(notify); }

  [[nodiscard]] std::mutex& lock() { return mutex_; }
  [[nodiscard]] ReceiveBuffers& buffers() { return buffers_; }
  [[nodiscard]] WindowBudget& windows() { return windows_; }

 private:
  static constexpr int kLastWordsMs = 2'000;
  static constexpr int kLastOpeningMs = 10'000;
  // Up to this many sockets are read in turn; with more, epoll tells which have input.
  static constexpr std::size_t kReadInTurn = 2;
  // While data comes over rails, sockets are looked at in one of so many pumps: each look is a system call. But long payloads may
  // come over sockets: so many pumps look one after another when a socket has brought something, and around each sleep, one
  // before it and one behind it.
  static constexpr std::uint32_t kPumpsALook = 16;
  static constexpr std::uint32_t kLooksAfterInput = 256;
  static constexpr std::uint32_t kLooksAroundSleep = 2;

  struct Member {
    std::shared_ptr<Link> link;
    std::unique_ptr<ReceiveShare> share;
    std::vector<bool> watched;           // by socket: epoll has it
    std::vector<bool> listens_for_room;  // by socket
  };

  Domain() = default;
  Moved pump_ready();
  void look_at_input(Moved& moved);
  [[nodiscard]] bool looks_at_sockets();
  void share_site_pace();
  void set_unsent(bool unsent, bool sends_now);
  Status watch(Member& member);
  [[nodiscard]] bool watch_socket(Member& member, std::size_t socket);
  void unwatch_socket(Member& member, std::size_t socket);
  // New sockets take the places of old ones.
  void take_offers(Member& member);
  // Closes the sockets of broken paths, and watches new ones.
  void follow_paths(Member& member);
  void unwatch(Member& member);
  [[nodiscard]] std::vector<std::shared_ptr<Link>> take_unused();
  Status make_alarm();
  void set_alarm(std::uint64_t at_ns);
  void deliver();

  std::mutex mutex_;
  Fd epoll_;
  Fd alarm_;  // a timer in epoll_ (Link::next_look_ns); made for the first link that continues or whose frames may be held back
  std::uint64_t alarm_ns_ = 0;  // when it rings; 0: not set
  ReceiveBuffers buffers_;
  WindowBudget windows_;
  std::shared_ptr<resume::CopyMemory> copies_ = std::make_shared<resume::CopyMemory>(kMostCopies);
  std::vector<Member> links_;
  bool together_ = false;
  PipeMaker* pipes_ = nullptr;
  bool on_rails_ = false;              // all links that have carried something use rails
  std::uint32_t pumps_ = 0;            // since the last look at sockets
  std::uint32_t looks_ = 0;            // that the next pumps take one after another
  std::atomic<std::size_t> count_{0};  // of links_
  std::atomic<std::size_t> sockets_{0};
  std::atomic<bool> unsent_{false};
  std::atomic<bool> sends_now_{false};
  std::atomic<bool> hurried_{false};
  std::function<void()> on_output_;
};

}  // namespace seto::tcp

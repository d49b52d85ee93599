#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "src/base/fork.h"
#include "src/base/result.h"

namespace seto {

// The thread of the process that watches peers: an epoll loop that never takes a progress token and never touches data. It starts
// on first use and is joined at exit. It does not exist in a forked child, where every call fails with that reason.
class ControlThread final {
 public:
  // Called on the control thread with epoll's events, no lock held. Short, never blocking; may add and remove handlers.
  using Handler = std::function<void(std::uint32_t events)>;

  // Keeps a handler registered. The destructor waits until the handler is not running (unless the handler itself destroys it), so
  // what the handler uses may be destroyed afterwards. Destroy it before the descriptor is closed; use neither in a forked child.
  class Registration final {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_) {}
    Registration& operator=(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { remove(); }

    void remove();
    [[nodiscard]] bool active() const { return owner_ != nullptr; }

   private:
    friend class ControlThread;
    Registration(ControlThread* owner, std::uint64_t id) : owner_(owner), id_(id) {}
    ControlThread* owner_ = nullptr;
    std::uint64_t id_ = 0;
  };

  // The control thread of this process. The pointer stays valid until the process ends, also for late destructors.
  static Result<ControlThread*> of_process();
  static Result<std::unique_ptr<ControlThread>> create();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;
  ~ControlThread();

  // Level-triggered: the handler runs again until the condition is cleared. `events` as for epoll_ctl. Any thread.
  [[nodiscard]] Result<Registration> add(int fd, std::uint32_t events, Handler handler);

  // Calls back once, within milliseconds after the peer's end of the socket is closed, also by kill -9, and also if it is already
  // closed. Reads nothing; received data does not wake this thread.
  [[nodiscard]] Result<Registration> watch(int socket, std::function<void()> on_hang_up);

  // Ends and joins the thread; later calls fail. Any thread but the control thread; idempotent.
  void stop();

 private:
  struct Entry {
    int fd;
    std::shared_ptr<const Handler> handler;
  };

  ControlThread() = default;
  void loop();
  void dispatch(std::uint64_t id, std::uint32_t events);
  void remove(std::uint64_t id);
  [[nodiscard]] bool dead() const { return generation_ != fork_generation(); }

  const std::uint32_t generation_ = fork_generation();
  PrivateFd epoll_;
  PrivateFd stop_event_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::uint64_t next_id_ = 1;
  std::uint64_t running_id_ = 0;  // the registration whose handler runs now
  bool stopping_ = false;
  std::thread thread_;
  std::thread::id thread_id_;  // readable while stop() joins
};

using Watch = ControlThread::Registration;

}  // namespace seto

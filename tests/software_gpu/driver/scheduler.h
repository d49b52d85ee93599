#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/software_gpu/driver/objects.h"
#include "tests/software_gpu/driver/turn_mutex.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu::driver {

// Runs operations when all that they depend on has ended, and the machine in between, in a thread of its own. So kernels go on
// while threads of the host poll memory. Host functions run in a second thread, without the lock. All other functions are called
// with the lock held.
class Scheduler final {
 public:
  Scheduler(Machine& machine, TurnMutex& mutex, std::uint32_t wait_seconds);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The legacy stream waits for all blocking streams of the context, and they for it; `after` comes on top of that.
  Done enqueue(Stream& stream, const std::vector<Stream*>& streams_of_context, Task task, std::vector<Done> after = {});
  // For nodes of a graph, whose order is only what `after` says. It starts after the start of `behind`, which is in its queue.
  Done enqueue_alone(Context& context, Task task, std::vector<Done> after, Done behind = nullptr);

  // Waits without the lock. Fails after the time of the settings, because a test must end.
  void wait(const char* what, const std::function<bool()>& condition);
  void wait_for(const char* what, const std::vector<Done>& all);
  // Lets time pass, without the lock.
  void pause(std::chrono::milliseconds time);

  // The operations that were issued and have not ended; of one context, or of all if it is null.
  [[nodiscard]] std::vector<Done> issued(const Context* context, bool only_kernels) const;

  // Runs in the thread for host functions; sets `done` at its end.
  void call_host(cuda::HostFunction function, void* argument, const Done& done);

  // Ends the threads, and nothing runs any more. The caller does not hold the lock. A host function that is running keeps its
  // thread, because nothing says that it ends.
  void end_threads();

 private:
  struct Operation {
    Context* context = nullptr;
    Task task{};
    Work work{};
    std::vector<Done> after{};
    Done behind{};
    Done done{};
  };
  struct HostCall {
    cuda::HostFunction function = nullptr;
    void* argument = nullptr;
    Done done{};
  };

  void run();
  void run_host_functions();
  bool advance();
  bool step(Operation& operation);
  void fail(const DriverError& error, const Context* only);

  Machine& machine_;
  TurnMutex& mutex_;
  std::chrono::seconds longest_wait_;
  std::condition_variable_any work_, done_, host_work_;
  std::list<Operation> operations_;
  std::deque<HostCall> host_calls_;
  bool stopping_ = false;
  bool in_host_call_ = false;
  std::thread worker_, host_worker_;
};

// Whether the calling thread runs a host function, which may not call the driver.
[[nodiscard]] bool in_host_function();

}  // namespace seto::software_gpu::driver

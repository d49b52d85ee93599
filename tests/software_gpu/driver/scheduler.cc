#include "tests/software_gpu/driver/scheduler.h"

#include <algorithm>
#include <utility>

#include "tests/software_gpu/fault.h"

namespace seto::software_gpu::driver {
namespace {

constexpr std::uint32_t kTurnsWithTheLock = 16;
// A stream that waits for a value in memory is told of it by no event, since other processes and host threads write it too.
constexpr std::chrono::microseconds kPollInterval{50};

thread_local bool this_thread_runs_a_host_function = false;

}  // namespace

bool in_host_function() { return this_thread_runs_a_host_function; }

Scheduler::Scheduler(Machine& machine, TurnMutex& mutex, std::uint32_t wait_seconds)
    : machine_(machine), mutex_(mutex), longest_wait_(wait_seconds), worker_([this] { run(); }), host_worker_([this] {
        run_host_functions();
      }) {}

Scheduler::~Scheduler() {
  end_threads();
  if (host_worker_.joinable()) host_worker_.join();
}

void Scheduler::end_threads() {
  mutex_.lock();
  stopping_ = true;
  const bool host_call = in_host_call_;
  work_.notify_all();
  host_work_.notify_all();
  mutex_.unlock();
  if (worker_.joinable()) worker_.join();
  if (host_worker_.joinable() && !host_call) host_worker_.join();
}

Done Scheduler::enqueue(Stream& stream, const std::vector<Stream*>& streams_of_context, Task task, std::vector<Done> after) {
  Context& context = *stream.context;
  const auto is_blocking = [](const Stream& one) { return (one.flags & cuda::kStreamNonBlocking) == 0; };
  if (stream.last != nullptr) after.push_back(stream.last);
  if (&stream == &context.legacy) {
    for (const Stream* other : streams_of_context)
      if (is_blocking(*other) && other->last != nullptr) after.push_back(other->last);
  } else if (is_blocking(stream) && context.legacy.last != nullptr) {
    after.push_back(context.legacy.last);
  }
  Done& queue = context.queues[stream.queue];
  stream.last = enqueue_alone(context, std::move(task), std::move(after), queue);
  queue = stream.last;
  return stream.last;
}

Done Scheduler::enqueue_alone(Context& context, Task task, std::vector<Done> after, Done behind) {
  auto done = std::make_shared<Completion>();
  operations_.push_back(
      {.context = &context, .task = std::move(task), .after = std::move(after), .behind = std::move(behind), .done = done});
  work_.notify_all();
  return done;
}

void Scheduler::wait(const char* what, const std::function<bool()>& condition) {
  if (done_.wait_for(mutex_, longest_wait_, condition)) return;
  throw DriverError(DriverCode::timeout, std::string(what) + " has waited for " + std::to_string(longest_wait_.count()) +
                                             " s, where the real driver would hang:\n" + hang_report(machine_));
}

void Scheduler::wait_for(const char* what, const std::vector<Done>& all) {
  wait(what, [&] { return std::all_of(all.begin(), all.end(), [](const Done& one) { return one == nullptr || one->done; }); });
}

void Scheduler::pause(std::chrono::milliseconds time) {
  static_cast<void>(done_.wait_for(mutex_, time, [] { return false; }));
}

std::vector<Done> Scheduler::issued(const Context* context, bool only_kernels) const {
  std::vector<Done> found;
  for (const Operation& operation : operations_)
    if ((context == nullptr || operation.context == context) && (!only_kernels || operation.task.is_kernel))
      found.push_back(operation.done);
  return found;
}

void Scheduler::call_host(cuda::HostFunction function, void* argument, const Done& done) {
  host_calls_.push_back({function, argument, done});
  host_work_.notify_all();
}

void Scheduler::run() {
  mutex_.lock();
  while (!stopping_) {
    const bool changed = advance();
    if (changed) done_.notify_all();
    if (!machine_.idle()) {
      try {
        machine_.run_some(kTurnsWithTheLock);
      } catch (const Fault& fault) {
        fail(DriverError(code_of(fault.kind()), fault.what()), nullptr);
      }
    } else if (!changed) {
      if (operations_.empty())
        work_.wait(mutex_, [&] { return stopping_ || !operations_.empty(); });
      else
        work_.wait_for(mutex_, kPollInterval);
    }
    mutex_.give_way();
  }
  mutex_.unlock();
}

void Scheduler::run_host_functions() {
  this_thread_runs_a_host_function = true;
  mutex_.lock();
  while (!stopping_) {
    host_work_.wait(mutex_, [&] { return stopping_ || !host_calls_.empty(); });
    while (!stopping_ && !host_calls_.empty()) {
      const HostCall call = std::move(host_calls_.front());
      host_calls_.pop_front();
      in_host_call_ = true;
      mutex_.unlock();
      call.function(call.argument);
      mutex_.lock();
      in_host_call_ = false;
      call.done->done = true;
      work_.notify_all();
    }
  }
  mutex_.unlock();
}

// Starts and ends what can start and end. Returns whether anything has ended.
bool Scheduler::advance() {
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = operations_.begin(); at != operations_.end();) {
      bool ended = false;
      try {
        ended = step(*at);
      } catch (const DriverError& error) {
        fail(error, at->context);
        return true;
      } catch (const Fault& fault) {
        fail(DriverError(code_of(fault.kind()), fault.what()), at->context);
        return true;
      }
      if (ended) at->done->done = true;
      at = ended ? operations_.erase(at) : std::next(at);
      changed = changed || ended;
    }
    any = any || changed;
  }
  return any;
}

// Returns whether the operation has ended.
bool Scheduler::step(Operation& operation) {
  if (!operation.done->started) {
    if (operation.behind != nullptr && !operation.behind->started) return false;
    const auto is_done = [](const Done& one) { return one->done; };
    if (!std::all_of(operation.after.begin(), operation.after.end(), is_done)) return false;
    operation.after.clear();
    operation.behind.reset();
    operation.done->started = true;
    operation.work = operation.task.make();
    if (operation.work.start) operation.work.start();
  }
  return !operation.work.ended || operation.work.ended();
}

// The contexts whose kernels are running fail, or one of them. A fault of one kernel ends all kernels of the machine.
void Scheduler::fail(const DriverError& error, const Context* only) {
  for (Operation& operation : operations_) {
    const bool runs = operation.done->started && operation.task.is_kernel;
    if (operation.context == only || (only == nullptr && runs))
      if (!operation.context->failed) operation.context->failed = error;
  }
  for (auto at = operations_.begin(); at != operations_.end();) {
    const bool failed = at->context->failed.has_value();
    if (failed) at->done->started = at->done->done = true;
    at = failed ? operations_.erase(at) : std::next(at);
  }
  done_.notify_all();
}

}  // namespace seto::software_gpu::driver

#include "src/api/support/handles.h"

#include <sched.h>

#include <chrono>
#include <thread>
#include <utility>

#include "src/base/clock.h"
#include "src/base/core_barrier.h"
#include "src/base/thread.h"
#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/device_communicator.h"

using seto::Code;
using seto::Communicator;
using seto::Deadline;
using seto::failure;
using seto::Status;

namespace {

// A pending call sees an abort within milliseconds. A call that takes longer is stuck, and the memory that it uses is not freed.
constexpr std::uint64_t kCloseMs = 10'000;

}  // namespace

std::shared_ptr<Communicator> setoComm::communicator() const {
  const std::lock_guard lock(mutex_);
  return communicator_;
}

bool setoComm::working() const {
  const std::lock_guard lock(mutex_);
  return working_;
}

void setoComm::check_lost_peers() const {
  std::shared_ptr<Communicator> idle;
  {
    const std::lock_guard lock(mutex_);
    if (!working_ && !finalized_) idle = communicator_;
  }
  if (idle != nullptr && active_calls.load(std::memory_order_acquire) == 0) idle->check_peers();
}

Status setoComm::asynchronous_failure() const {
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr && communicator_->failed()) return communicator_->first_failure();
  return failure_;
}

Status setoComm::why_unusable() const {
  const std::lock_guard lock(mutex_);
  if (working_)
    return failure(Code::invalid_usage,
                   "comm: it is still being %s; call setoCommGetAsyncError until it is no longer setoInProgress",
                   kind_ == Work::making      ? "made"
                   : kind_ == Work::splitting ? "split"
                                              : "finalized");
  if (communicator_ != nullptr && communicator_->failed()) return communicator_->first_failure();
  if (!failure_.ok()) return failure_;
  return failure(Code::invalid_usage, "comm: it was %s; only queries and setoCommDestroy are allowed",
                 finalized_ ? "finalized" : "ended by another thread");
}

// A failed split leaves the communicator usable, so its failure is cleared.
void setoComm::begin_work(Work kind) {
  const std::lock_guard lock(mutex_);
  working_ = true;
  if (kind_ == Work::splitting) failure_ = Status();
  kind_ = kind;
}

void setoComm::end_work(const Status& status) {
  const std::lock_guard lock(mutex_);
  working_ = false;
  if (failure_.ok()) failure_ = status;
  work_ended_.notify_all();
}

Status setoComm::run_or_start(Work kind, std::function<Status()> work) {
  begin_work(kind);
  if (!settings.blocking) return start(std::move(work));
  Status status = work();
  end_work(status);
  return status;
}

// Only the calling thread may make calls, so no call is active.
Status setoComm::start_split(std::function<Status()> work) {
  begin_work(Work::splitting);
  seto::Communicator* const open = usable.exchange(nullptr, std::memory_order_acq_rel);
  Status status = start([this, open, work = std::move(work)]() mutable {
    Status done = work();
    work = nullptr;
    usable.store(open, std::memory_order_release);
    return done;
  });
  if (status.code() != Code::in_progress) usable.store(open, std::memory_order_release);
  return status;
}

Status setoComm::start(std::function<Status()> work) {
  if (worker_.joinable()) worker_.join();  // earlier work, which has ended
  auto thread = seto::start_thread("seto-setup", [share = shared_from_this(), work = std::move(work)]() mutable {
    Status status;
    try {
      status = work();
    } catch (const std::exception& error) {
      status = failure(Code::internal, "unexpected: %s", error.what());
    }
    work = nullptr;  // before the end is announced: the function may hold objects that the caller destroys next
    share->end_work(status);
  });
  if (!thread.ok()) {
    end_work(thread.status());
    return thread.status();
  }
  worker_ = std::move(thread).value();
  return {Code::in_progress, "in progress"};
}

bool setoComm::join_work() {
  {
    std::unique_lock lock(mutex_);
    if (!work_ended_.wait_for(lock, std::chrono::milliseconds(kCloseMs), [this] { return !working_; })) {
      if (worker_.joinable()) worker_.detach();
      return false;
    }
  }
  if (worker_.joinable()) worker_.join();
  return true;
}

bool setoComm::await_finalize() {
  std::unique_lock lock(mutex_);
  if (!working_ || kind_ != Work::finalizing) return false;
  work_ended_.wait(lock, [this] { return !working_; });
  return true;
}

void setoComm::made(std::shared_ptr<Communicator> communicator, std::shared_ptr<seto::DeviceCommunicator> on_device) {
  const std::lock_guard lock(mutex_);
  communicator_ = std::move(communicator);
  device_ = std::move(on_device);
  device = device_.get();
  if (seto::api::is_alive(this)) usable.store(communicator_.get(), std::memory_order_release);
}

// Null if there is nothing to finalize.
std::shared_ptr<Communicator> setoComm::take_to_finalize() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr || finalized_) return nullptr;
  finalized_ = true;
  usable.store(nullptr, std::memory_order_release);
  return communicator_;
}

Status setoComm::finalize() {
  std::shared_ptr<Communicator> communicator = take_to_finalize();
  if (communicator == nullptr) return {};
  return run_or_start(Work::finalizing, [communicator = std::move(communicator), on_device = device]() -> Status {
    if (on_device != nullptr) SETO_TRY(on_device->drain());
    return communicator->finalize();
  });
}

Status setoComm::drain() {
  const std::shared_ptr<Communicator> communicator = take_to_finalize();
  if (communicator == nullptr) return {};
  if (device != nullptr) SETO_TRY(device->drain());
  return communicator->drain();
}

bool setoComm::close() {
  usable.store(nullptr, std::memory_order_seq_cst);
  (void)seto::pass_barrier_on_every_core();
  const Deadline until = Deadline::after_ms(kCloseMs);
  while (active_calls.load(std::memory_order_acquire) > 0) {
    if (until.passed()) return false;
    sched_yield();
  }
  return true;
}

namespace seto::api {

Status null_argument(const char* name) { return failure(Code::invalid_argument, "%s: NULL", name); }

Status check_handle(const setoComm* comm) {
  if (comm == nullptr) return failure(Code::invalid_argument, "comm is NULL: make it with setoCommInitRank");
  if (!is_alive(comm))
    return failure(Code::invalid_argument, "comm: %p is not a communicator; was it destroyed?", static_cast<const void*>(comm));
  return {};
}

Status check_handle(const setoContext* context) {
  if (context == nullptr) return failure(Code::invalid_argument, "context is NULL: make it with setoContextCreate");
  if (!live_contexts.contains(context))
    return failure(Code::invalid_argument, "context: %p is not a context; was it destroyed?", static_cast<const void*>(context));
  return {};
}

Result<Communicator*> usable(const setoComm* comm) {
  Communicator* const communicator = comm->usable.load(std::memory_order_acquire);
  if (communicator == nullptr) return comm->why_unusable();
  return communicator;
}

}  // namespace seto::api

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "include/seto/seto.h"
#include "src/api/support/errors.h"
#include "src/api/support/live_handles.h"
#include "src/api/support/premul_sums.h"
#include "src/api/support/registered_buffers.h"
#include "src/api/support/settings.h"

namespace seto {
class Communicator;
class DeviceCommunicator;
}  // namespace seto

// The objects behind the handles of the C API.

namespace seto::api {
inline constinit LiveHandles live_contexts;
inline constinit LiveHandles live_communicators;
}  // namespace seto::api

struct setoContext final {
  setoContext() { seto::api::live_contexts.add(this); }
  ~setoContext() { seto::api::live_contexts.remove(this); }
  setoContext(const setoContext&) = delete;
  setoContext& operator=(const setoContext&) = delete;

  std::shared_ptr<seto::Context> context;
};

// One rank's handle of a communicator, from the call that makes it to the call that frees it. A background thread that makes or
// finalizes the communicator holds a share; the call that frees the handle waits for that thread.
struct setoComm final : std::enable_shared_from_this<setoComm> {
  setoComm(seto::Rank own_rank, int rank_count, seto::api::Settings its_settings)
      : rank(own_rank), ranks(rank_count), settings(std::move(its_settings)) {
    seto::api::live_communicators.add(this);
  }
  ~setoComm() { seto::api::live_communicators.remove(this); }
  setoComm(const setoComm&) = delete;
  setoComm& operator=(const setoComm&) = delete;

  // Null while the communicator is being made, and once no more calls are accepted: finalized, aborted, destroyed.
  std::atomic<seto::Communicator*> usable{nullptr};
  // For calls with `usable` set: null on host memory.
  seto::DeviceCommunicator* device = nullptr;
  // Set by the call that ends the handle: a communicator that is still being made or split ends soon.
  std::atomic<bool> given_up{false};
  // Number of calls under way; written only by the thread that makes calls.
  std::atomic<int> active_calls{0};

  const seto::Rank rank;
  const int ranks;
  const seto::api::Settings settings;
  seto::api::PremulSums premul_sums;
  seto::api::RegisteredBuffers registered;
  std::shared_ptr<setoComm> handle;  // the user's share; null before and after

  // Any thread may call these.
  [[nodiscard]] std::shared_ptr<seto::Communicator> communicator() const;
  [[nodiscard]] seto::Status asynchronous_failure() const;
  // If no call is active, checks whether a peer is lost, and if so makes that the asynchronous failure. An active call checks by
  // itself.
  void check_lost_peers() const;
  [[nodiscard]] bool working() const;
  // The reason why `usable` is null.
  [[nodiscard]] seto::Status why_unusable() const;

  enum class Work : std::uint8_t { making, splitting, finalizing };
  // Runs work that makes or ends the communicator: on this thread, or on a background thread if the handle does not block.
  seto::Status run_or_start(Work kind, std::function<seto::Status()> work);
  // Runs a split on a background thread. The split makes calls of its own, so calls of the user are refused meanwhile.
  seto::Status start_split(std::function<seto::Status()> work);
  // Waits until the background thread has ended. False if it does not end in time, which only a bootstrap function of the user
  // can cause; the thread then continues and keeps what it uses.
  bool join_work();
  // True if the communicator is being finalized; waits for the end of that.
  bool await_finalize();
  // `device`: null on host memory.
  void made(std::shared_ptr<seto::Communicator> communicator, std::shared_ptr<seto::DeviceCommunicator> device);
  seto::Status finalize();
  // For destroy, in place of finalize(): waits on this thread for what this rank has issued, and for no other rank.
  seto::Status drain();
  // Refuses new calls and waits for active ones. False if a call does not end in time; the communicator must then not be freed.
  bool close();

 private:
  std::shared_ptr<seto::Communicator> take_to_finalize();
  void begin_work(Work kind);
  void end_work(const seto::Status& status);
  seto::Status start(std::function<seto::Status()> work);

  mutable std::mutex mutex_;
  std::condition_variable work_ended_;
  std::thread worker_;  // the background thread
  std::shared_ptr<seto::Communicator> communicator_;
  std::shared_ptr<seto::DeviceCommunicator> device_;  // ends before the communicator
  seto::Status failure_;                              // failure of making, finalizing, or the last split
  bool working_ = false;
  Work kind_ = Work::making;  // kind of the work that runs or ran last
  bool finalized_ = false;
};

namespace seto::api {

// RAII: marks a call as active. While it is alive, setoCommAbort on another thread does not free the communicator. `usable` is
// read only after that; close() sets `usable` to null, runs a barrier on every core, and then looks for active calls.
class CallGuard final {
 public:
  explicit CallGuard(setoComm& comm) : comm_(comm) {
    comm_.active_calls.store(comm_.active_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~CallGuard() { comm_.active_calls.store(comm_.active_calls.load(std::memory_order_relaxed) - 1, std::memory_order_release); }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  setoComm& comm_;
};

// Any pointer: it is looked up, and its memory is not read.
inline bool is_alive(const setoComm* comm) { return live_communicators.contains(comm); }

Status null_argument(const char* name);
// Fails if the handle is null or not a live handle of this type.
Status check_handle(const setoComm* comm);
Status check_handle(const setoContext* context);

// The communicator of a handle that can make calls: it was made successfully and has not ended. Call with a CallGuard alive,
// which keeps the handle's memory: another thread may end the handle after the check that it is one, and the text then says so.
Result<Communicator*> usable(const setoComm* comm);

}  // namespace seto::api

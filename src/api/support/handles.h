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
#include "src/api/support/premul_sums.h"
#include "src/api/support/settings.h"
#include "src/core/communicator/communicator.h"

// What the handles of the C API point at.

struct setoContext final {
  static constexpr std::uint64_t kMagic = 0x5e70c0de00c07e87;

  std::atomic<std::uint64_t> magic{kMagic};
  std::shared_ptr<seto::Context> context;
};

// One rank's end, from the call that makes it to the call that frees it. A thread that makes or finalizes it in the background
// holds it too; whoever frees the handle waits for that.
struct setoComm final : std::enable_shared_from_this<setoComm> {
  static constexpr std::uint64_t kMagic = 0x5e70c0de0000c033;

  setoComm(seto::Rank own_rank, int rank_count, seto::api::Settings its_settings)
      : rank(own_rank), ranks(rank_count), settings(std::move(its_settings)) {}

  std::atomic<std::uint64_t> magic{kMagic};
  // Null while it is made, and from the moment when calls are over: finalized, aborted, destroyed.
  std::atomic<seto::Communicator*> usable{nullptr};
  // Set by whoever ends it: what is still being made or split ends soon.
  std::atomic<bool> given_up{false};
  // Calls under way; written by the one thread that may call.
  std::atomic<int> inside{0};

  const seto::Rank rank;
  const int ranks;
  const seto::api::Settings settings;
  seto::api::PremulSums premul_sums;
  std::shared_ptr<setoComm> handle;  // the user's share; null before and after

  // These: any thread.
  [[nodiscard]] std::shared_ptr<seto::Communicator> communicator() const;
  [[nodiscard]] seto::Status asynchronous_failure() const;
  // Notices, if no call is inside, that a peer is lost: an asynchronous failure from then on. Calls look for themselves.
  void miss_the_lost() const;
  [[nodiscard]] bool working() const;
  // Why there is no `usable`.
  [[nodiscard]] seto::Status why_unusable() const;

  enum class Work : std::uint8_t { making, splitting, finalizing };
  // Runs work that makes or ends the communicator, on this thread or, if the settings say so, on one of its own.
  seto::Status run_or_start(Work kind, std::function<seto::Status()> work);
  // Work that makes calls of its own: on a thread of its own, while calls of the user are refused.
  seto::Status start_split(std::function<seto::Status()> work);
  // Until that thread has ended. False if it does not in time, which only a user's own bootstrap function can cause: then it goes
  // on, and holds what it uses.
  bool join_work();
  // Is it being finalized? Then waits for the end of that.
  bool await_finalize();
  seto::Status made(seto::Result<std::unique_ptr<seto::Communicator>> result);
  seto::Status finalize();
  // In place of that, for who destroys it: waits, on this thread, for what this rank has issued, and for no other rank.
  seto::Status finish();
  // No call gets in any more. Waits for those inside; false if one does not end in time, and the communicator must be left alone.
  bool close();

 private:
  std::shared_ptr<seto::Communicator> take_to_finalize();
  void begin_work(Work kind);
  void end_work(const seto::Status& status);
  seto::Status start(std::function<seto::Status()> work);

  mutable std::mutex mutex_;
  std::condition_variable work_ended_;
  std::thread worker_;  // of the user's threads
  std::shared_ptr<seto::Communicator> communicator_;
  seto::Status failure_;  // of making, finalizing, or the last split
  bool working_ = false;
  Work kind_ = Work::making;  // of what is, or was, being done
  bool finalized_ = false;
};

namespace seto::api {

// While one is alive, setoCommAbort on another thread waits with freeing the communicator. Only then is `usable` looked at: who
// closes makes all cores pass a barrier between taking it away and looking for calls inside.
class Inside final {
 public:
  explicit Inside(setoComm& comm) : comm_(comm) {
    comm_.inside.store(comm_.inside.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Inside() { comm_.inside.store(comm_.inside.load(std::memory_order_relaxed) - 1, std::memory_order_release); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  setoComm& comm_;
};

inline bool is_alive(const setoComm* comm) {
  return comm != nullptr && comm->magic.load(std::memory_order_relaxed) == setoComm::kMagic;
}

Status null_argument(const char* name);
// Null, or not what such a handle points at.
Status check_handle(const setoComm* comm);
Status check_handle(const setoContext* context);

// For calls that need the communicator to work: made, not failed in making, not ended. Within Inside.
Result<Communicator*> usable(const setoComm* comm);

}  // namespace seto::api

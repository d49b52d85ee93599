#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/launch_watcher.h"
#include "src/core/device_memory/overdue_launch.h"
#include "src/core/device_memory/stream_users.h"
#include "src/core/device_memory/transfer_watch.h"
#include "src/core/progress/slow_call_warning.h"

namespace seto {

// The sends and receives of one kernel.
struct TransferRequest {
  const TransferBatch& batch;
  cuda::Stream stream = nullptr;
  std::vector<cuda::Stream> joined{};  // other streams that its calls name
  CallerMark mark{};
  bool is_alone = false;  // no call of a group
};

// One rank's end of a communicator on device memory: its calls launch kernels on streams of CUDA, and return. The communicator
// below it, on host memory, is its control: it knows which ranks are lost, and tells them of failures. Calls come from one thread
// at a time.
class DeviceCommunicator final : public Watched, public LaunchOrder::Member {
 public:
  // Blocks until all ranks have called it. The ranks exchange by the bootstrap, which has the deadline of the init and takes no
  // operation number.
  static Result<std::unique_ptr<DeviceCommunicator>> create(std::shared_ptr<Communicator> control, Bootstrap& bootstrap,
                                                            std::shared_ptr<GpuContext> gpu, Deadline until);
  // Waits for the kernels of this rank, after a failure only until they have been stopped. What other ranks may still write to
  // is freed later.
  ~DeviceCommunicator() override;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  // Launches calls of a group on the stream, in their order and in as few kernels as possible. A call that is wrong ends the
  // communicator on all ranks, because no kernel of this rank could tell theirs. So does one for which the process has no memory
  // (std::bad_alloc, which is thrown on). A call outside of groups (`is_alone`) that is refused because of a capture ends
  // nothing: the caller can make it again, and until then the other ranks wait as for a late one.
  Status enqueue(std::span<const Call> calls, cuda::Stream stream, bool is_alone = false);
  // Launches sends and receives, which take no operation number, with the same rules.
  Status enqueue(const TransferRequest& request);
  // A call of the thread was not launched because the process has no memory. Ends the communicator on all ranks; what needs
  // memory for that the watcher tries again.
  void end_without_memory() noexcept;
  // A state of error feedback for calls of this communicator, with its residuals on the GPU.
  Result<std::shared_ptr<ErrorFeedback>> make_feedback(DataType type, std::uint64_t count);
  // Waits for the kernels of this rank. They end even after a failure.
  Status drain();

  [[nodiscard]] int device() const { return gpu_->device(); }

  Activity look() override;

 private:
  DeviceCommunicator(std::shared_ptr<Communicator> control, std::shared_ptr<GpuContext> gpu)
      : control_(std::move(control)), gpu_(std::move(gpu)) {}
  Status open(Bootstrap& bootstrap, Deadline until);
  Result<RankStatement> prepare(Deadline until);
  Result<std::string> map_workspaces(const std::vector<RankStatement>& statements, const std::vector<bool>& nearby);
  Status make_parts(const std::vector<RankStatement>& statements);
  // Where ranks are in several processes: all find whether each can read the buffers of all others.
  Status agree_on_lending(const std::vector<RankStatement>& statements, Bootstrap& bootstrap, Deadline until);
  Status measure_costs(Bootstrap& bootstrap, Deadline until);
  // The number of the capture that the stream takes part in, 0 if none.
  Result<std::uint64_t> capture_of(cuda::Stream stream, const ContextScope& scope) const;
  Status add(const Call& call, cuda::Stream stream, std::uint64_t capture);
  Status set_residual(const Call& call, Launches::Request& request, std::uint64_t capture) const;
  Status set_buffers(const Call& call, Launches::Request& request, std::uint64_t capture);
  Status launch(const TransferRequest& request, std::uint64_t capture);
  template <class Launch>
  Status guarded(const Launch& launch);
  Status enqueue_all(std::span<const Call> calls, cuda::Stream stream, bool is_alone);
  Status end_with(const Status& reason, std::string_view call);
  Status first_failure();
  [[nodiscard]] bool is_busy() const { return parts_->launches->running() > 0 || (relay_ != nullptr && relay_->is_busy()); }
  // A kernel was told to stop because it is overdue, so what ends now has failed.
  [[nodiscard]] bool awaits_answer() const {
    return !control_->failed() && (overdue_->is_there() || replay_watch_->awaits_answer());
  }
  [[nodiscard]] bool has_failed() const override { return control_->failed(); }
  void fail_without_memory();
  void take_number_of_relay(Launches::Request& request, std::uint64_t capture);
  void look_at_launches();
  void judge(const Launches::State& state);
  void judge_collective(const Launches::State& state);
  void fail_overdue();

  const std::shared_ptr<Communicator> control_;
  const std::shared_ptr<GpuContext> gpu_;
  std::unique_ptr<RetiredDevice> parts_ = std::make_unique<RetiredDevice>();
  RelayedPairs pairs_;
  std::unique_ptr<Relay> relay_;                      // null: all GPUs reach each other. Uses parts_
  std::optional<GpuSlotMemory::Setup> wanted_slots_;  // of the relay, until the first call takes memory for them
  std::unique_ptr<StreamUsers> stream_users_;
  bool has_other_gpus_ = false;  // a rank of this process uses another one
  bool has_told_of_copies_ = false;
  std::uint32_t digest_ = 0;  // of all calls so far: calls that differ are noticed, even if no rank looks while they run
  bool is_watched_ = false;
  std::atomic<bool> lacks_memory_{false};  // a call was not launched because of that

  // The watcher alone uses these.
  std::unique_ptr<TransferWatch> transfer_watch_;
  std::unique_ptr<ReplayWatch> replay_watch_;
  std::unique_ptr<OverdueLaunch> overdue_;
  Deadline next_look_at_peers_ = Deadline::after_ms(0);
  SlowCallWarning slow_;
  std::uint64_t slow_operation_ = 0;
};

}  // namespace seto

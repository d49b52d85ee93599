#pragma once

#include <memory>

#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/launch_watcher.h"
#include "src/core/device_memory/stream_users.h"
#include "src/core/progress/slow_call_warning.h"

namespace seto {

// One rank's end of a communicator on device memory: its calls launch kernels on streams of CUDA, and return. The communicator
// below it, on host memory, is its control: it knows which ranks are lost, and tells them of failures. Calls come from one thread
// at a time.
class DeviceCommunicator final : public Watched {
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

  // Launches a call on the stream. A call that is wrong ends the communicator on all ranks, because no kernel of this rank could
  // tell theirs; a call that no rank can make in this version changes nothing.
  Status enqueue(const Call& call, cuda::Stream stream);
  // Waits for the kernels of this rank. They end even after a failure.
  Status drain();

  [[nodiscard]] int device() const { return gpu_->device(); }

  Activity look() override;

 private:
  DeviceCommunicator(std::shared_ptr<Communicator> control, std::shared_ptr<GpuContext> gpu)
      : control_(std::move(control)), gpu_(std::move(gpu)) {}
  Status open(Bootstrap& bootstrap, Deadline until);
  Result<RankStatement> prepare();
  Status check_ranks(const std::vector<RankStatement>& statements) const;
  Result<std::uint32_t> blocks_of(const std::vector<RankStatement>& statements) const;
  Status measure_costs(const std::vector<RankStatement>& statements, Bootstrap& bootstrap, Deadline until);
  Status launch(const Call& call, cuda::Stream stream);
  void judge(const Launches::State& state);
  void fail_overdue(const Launches::State& state);

  const std::shared_ptr<Communicator> control_;
  const std::shared_ptr<GpuContext> gpu_;
  std::unique_ptr<RetiredDevice> parts_ = std::make_unique<RetiredDevice>();
  std::unique_ptr<StreamUsers> stream_users_;
  std::uint32_t digest_ = 0;  // of all calls so far: calls that differ are noticed, even if no rank looks while they run
  bool is_watched_ = false;

  // The watcher alone uses these.
  Deadline next_look_at_peers_ = Deadline::after_ms(0);
  SlowCallWarning slow_;
  std::uint64_t slow_operation_ = 0;
};

}  // namespace seto

#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/torch/c10d_compat.h"
#include "src/torch/communicator.h"
#include "src/torch/device/device_communicators.h"
#include "src/torch/error_feedback.h"

namespace seto::torch_backend {

// The options of this backend beyond those of every backend: new_group(pg_options=seto.torch.Options(codec="fp16")).
struct GroupOptions final : C10dCompatOptions {
  explicit GroupOptions(std::chrono::milliseconds timeout_of_group = kBackendDefaultTimeout)
      : C10dCompatOptions("seto", timeout_of_group) {}

  std::string codec;      // as in setoConfig_t; empty: the environment decides
  std::string algorithm;  // as in setoConfig_t; empty: the environment decides
};

// Implements c10d's Backend with the C API: translates each call of torch into calls of the library, and does nothing else.
class Backend final : public C10dCompat {
 public:
  struct Group {
    c10::intrusive_ptr<c10d::Store> store;
    int rank = 0;
    int ranks = 1;
    std::vector<std::int64_t> global_ranks;  // by rank; empty: all ranks
    std::string name;
  };

  // Blocks until all ranks of the group have joined.
  Backend(const Group& group, c10::intrusive_ptr<GroupOptions> options);
  ~Backend() override;

  const std::string getBackendName() const override { return "seto"; }  // NOLINT: the signature of the base class
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return c10::make_intrusive<GroupOptions>(*options_);  // a copy, because the caller may change it for another group
  }

  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using OwnWork = c10::intrusive_ptr<Work>;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  // The failure names the missing ranks. `wait_all` has no effect, because all of them are named in any case.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) override;

  // A sum in a codec, with error feedback if a state is given. torch has no such function.
  WorkPtr all_reduce_coded(const at::Tensor& tensor, const c10d::ReduceOp& op, int codec, const ErrorFeedback* feedback);
  [[nodiscard]] const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  [[nodiscard]] const DeviceCommunicators& on_devices() const { return on_devices_; }

  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& options) override;

  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  // Empty, because the library numbers operations itself.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override;
  ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  void eagerConnectSingleDevice(at::Device device) override { (void)on_devices_.of(device, options_->timeout); }

 private:
  struct Asked {
    c10d::OpType type;
    const char* title;
    std::chrono::milliseconds timeout;
    StreamKey key;
    int source = -1;
    int codec = 0;
    setoErrorFeedback_t feedback = nullptr;
    bool waits_next = false;  // torch says that its caller waits for the call next
  };
  static const Asked kBatch;
  template <class OptionsOfCall>
  static Asked collective(c10d::OpType type, const char* title, const OptionsOfCall& options) {
    Asked asked{type, title, options.timeout, {}};
    if constexpr (requires { options.asyncOp; }) asked.waits_next = !options.asyncOp;
    return asked;
  }
  // The calls of one thread between startCoalescing and endCoalescing.
  struct Batch {
    c10::intrusive_ptr<Work> work;  // null before the first call, which decides on the device
    std::vector<Communicator::Call> calls;
    bool with_collectives = false;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // the longest timeout of its calls
  };

  // The Work of a call on the device of its tensors: its own, or that of this thread's batch.
  OwnWork begin(const Asked& asked, Tensors results, const std::optional<Tensors>& inputs);
  OwnWork begin_on(c10::Device device, const Asked& asked, Tensors results, const std::optional<Tensors>& inputs);
  OwnWork new_work(c10::Device device, const Asked& asked, Tensors results, const std::optional<Tensors>& inputs);
  WorkPtr barrier_on(c10::Device device, const c10d::BarrierOptions& options);
  [[nodiscard]] setoCallConfig_t config_of(const Asked& asked, const Work& work) const;
  // Issues the calls now, or together with this thread's batch.
  WorkPtr launch(const Asked& asked, const c10::intrusive_ptr<Work>& work, std::vector<Communicator::Call> calls);
  [[nodiscard]] Batch* batch_of_thread();
  [[nodiscard]] std::size_t peers() const { return static_cast<std::size_t>(getSize()); }

  Communicator::Call all_reduce(Work& work, const at::Tensor& tensor, const c10d::ReduceOp& op);
  Communicator::Call all_gather(Work& work, const at::Tensor& output, const at::Tensor& input) const;
  Communicator::Call all_gather(Work& work, const Tensors& outputs, const at::Tensor& input) const;
  Communicator::Call all_gather_of_several(Work& work, const std::vector<Tensors>& outputs, const Tensors& inputs) const;
  Communicator::Call reduce_scatter(Work& work, const at::Tensor& output, const at::Tensor& input,
                                    const c10d::ReduceOp& op) const;

  const c10::intrusive_ptr<GroupOptions> options_;
  const Group group_;
  const std::shared_ptr<Communicator> communicator_;
  DeviceCommunicators on_devices_;
  std::mutex mutex_;
  std::map<std::thread::id, Batch> batches_;
  std::uint64_t sequence_ = 0;
};

}  // namespace seto::torch_backend

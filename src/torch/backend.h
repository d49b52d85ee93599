#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/torch/communicator.h"
#include "src/torch/error_feedback.h"
#include "src/torch/c10d_compat.h"
#include "src/torch/types.h"

namespace seto::torch_backend {

// What a user may ask for besides what every backend has: new_group(pg_options=seto.torch.Options(codec="fp16")).
struct GroupOptions final : SeamOptions {
  explicit GroupOptions(std::chrono::milliseconds timeout_of_group = kBackendDefaultTimeout)
      : SeamOptions("seto", timeout_of_group) {}

  std::string codec;      // as setoConfig_t has it; empty: the environment's
  std::string algorithm;  // likewise
};

// c10d's seam over the C API: what a call of torch means in calls of the library, and nothing else.
class Backend final : public Seam {
 public:
  struct Group {
    c10::intrusive_ptr<c10d::Store> store;
    int rank = 0;
    int ranks = 1;
    std::vector<std::int64_t> global_ranks;  // by rank; empty: all
    std::string name;
  };

  // Blocks until all ranks of the group have come.
  Backend(const Group& group, c10::intrusive_ptr<GroupOptions> options);
  ~Backend() override;

  const std::string getBackendName() const override { return "seto"; }  // NOLINT: as the base has it
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return c10::make_intrusive<GroupOptions>(*options_);  // who gets it may change it for another group
  }

  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

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
  // Which ranks have not come is in the text of the failure; `wait_all` changes nothing, as all of them are named anyway.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) override;

  // Beyond torch: a sum that travels in a codec, with what earlier ones left out if there is such a state.
  WorkPtr all_reduce_coded(const at::Tensor& tensor, const c10d::ReduceOp& op, int codec, const ErrorFeedback* feedback);
  [[nodiscard]] const std::shared_ptr<Channel>& channel() const { return channel_; }

  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& options) override;

  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  // The library numbers operations itself.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override;
  ErrorType getError() override;
  void abort() override { channel_->abort(); }
  void shutdown() override { channel_->shut_down(); }

 private:
  struct Asked {
    c10d::OpType type;
    const char* title;
    std::chrono::milliseconds timeout;
    Lane lane;
    int source = -1;
    int codec = 0;
    setoErrorFeedback_t feedback = nullptr;
    bool waits_next = false;  // so torch says of its caller
  };
  template <class OptionsOfCall>
  static Asked collective(c10d::OpType type, const char* title, const OptionsOfCall& options) {
    Asked asked{type, title, options.timeout, {}};
    if constexpr (requires { options.asyncOp; }) asked.waits_next = !options.asyncOp;
    return asked;
  }
  // What came between startCoalescing and its end on one thread.
  struct Batch {
    c10::intrusive_ptr<Work> work;
    std::vector<Channel::Call> calls;
    bool with_collectives = false;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // the longest that a call of it brought
  };

  // The work that a call belongs to: one of its own, or that of the batch of this thread.
  c10::intrusive_ptr<Work> begin(const Asked& asked, Tensors results, const std::optional<Tensors>& inputs);
  [[nodiscard]] setoCallConfig_t config_of(const Asked& asked, const Work& work) const;
  // Runs its calls at once, or with the batch.
  WorkPtr launch(const Asked& asked, const c10::intrusive_ptr<Work>& work, std::vector<Channel::Call> calls);
  [[nodiscard]] Batch* batch_of_thread();
  [[nodiscard]] std::size_t peers() const { return static_cast<std::size_t>(getSize()); }

  Channel::Call all_reduce(Work& work, const at::Tensor& tensor, const c10d::ReduceOp& op);
  Channel::Call all_gather(Work& work, const at::Tensor& output, const at::Tensor& input) const;
  Channel::Call all_gather(Work& work, const Tensors& outputs, const at::Tensor& input) const;
  Channel::Call all_gather_of_several(Work& work, const std::vector<Tensors>& outputs, const Tensors& inputs) const;
  Channel::Call reduce_scatter(Work& work, const at::Tensor& output, const at::Tensor& input, const c10d::ReduceOp& op) const;

  const c10::intrusive_ptr<GroupOptions> options_;
  const Group group_;
  const std::shared_ptr<Channel> channel_;
  std::mutex mutex_;
  std::map<std::thread::id, Batch> batches_;
  std::uint64_t sequence_ = 0;
};

}  // namespace seto::torch_backend

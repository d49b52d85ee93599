#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transports/rdma/verbs/libibverbs_functions.h"
#include "transports/rdma/verbs/verbs_advice.h"

namespace seto::rdma {

// A device opened by libibverbs, with one protection domain for all that is made of it.
class LibibverbsDevice final : public VerbsDevice {
 public:
  // Takes over the context, and closes it after a failure too.
  static Result<std::unique_ptr<VerbsDevice>> create(const LibibverbsFunctions& functions, abi::Context* context,
                                                     std::string name);
  LibibverbsDevice(const LibibverbsDevice&) = delete;
  LibibverbsDevice& operator=(const LibibverbsDevice&) = delete;
  ~LibibverbsDevice() override;

  Result<DeviceFacts> facts() override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::byte* memory, std::size_t size) override;
  Result<std::unique_ptr<MemoryRegion>> register_unordered(std::byte* memory, std::size_t size) override;
  Result<std::unique_ptr<MemoryRegion>> register_dma_buf(const DmaBuf& memory) override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(std::uint32_t depth) override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& completions, const QueuePairSize& size) override;
  [[nodiscard]] int event_descriptor() const override { return context_->event_descriptor; }
  std::optional<AsyncEvent> next_event() override;

  [[nodiscard]] const LibibverbsFunctions& functions() const { return functions_; }
  [[nodiscard]] abi::Context* context() const { return context_; }
  [[nodiscard]] Status failed(VerbsCall call, int error) const;

 private:
  LibibverbsDevice(const LibibverbsFunctions& functions, abi::Context* context, std::string name)
      : functions_(functions), context_(context), name_(std::move(name)), distance_(distance_of(name_, own_processors())) {}
  Result<PortFacts> port_facts(std::uint8_t number);

  const LibibverbsFunctions functions_;
  abi::Context* const context_;
  const std::string name_;
  const std::uint8_t distance_;
  abi::Domain* domain_ = nullptr;
  std::atomic<bool> orders_all_{false};  // the device has refused memory that it may write in any order
};

}  // namespace seto::rdma

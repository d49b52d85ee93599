#pragma once

#include "tests/support/fake_verbs.h"

// The objects that a FakeFabric hands out.
namespace seto::support {

void ring(int descriptor);

class FakeNames final : public rdma::Verbs {
 public:
  explicit FakeNames(FakeFabric& fabric) : fabric_(fabric) {}
  Result<std::vector<std::string>> devices() override;
  Result<std::unique_ptr<rdma::VerbsDevice>> open_device(const std::string& name) override;

 private:
  FakeFabric& fabric_;
};

class FakeDevice final : public rdma::VerbsDevice {
 public:
  FakeDevice(FakeFabric& fabric, std::string name);
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  ~FakeDevice() override;
  Result<rdma::DeviceFacts> facts() override;
  Result<std::unique_ptr<rdma::MemoryRegion>> register_memory(std::byte* memory, std::size_t size) override;
  Result<std::unique_ptr<rdma::MemoryRegion>> register_unordered(std::byte* memory, std::size_t size) override;
  // The position of the descriptor is where the dma-buf begins in the file that stands for it (tests/software_gpu/driver).
  Result<std::unique_ptr<rdma::MemoryRegion>> register_dma_buf(const rdma::DmaBuf& memory) override;
  Result<std::unique_ptr<rdma::CompletionQueue>> create_completion_queue(std::uint32_t depth) override;
  Result<std::unique_ptr<rdma::QueuePair>> create_queue_pair(rdma::CompletionQueue& completions,
                                                             const rdma::QueuePairSize& size) override;
  [[nodiscard]] int event_descriptor() const override { return descriptor_; }
  std::optional<rdma::AsyncEvent> next_event() override;

 private:
  [[nodiscard]] std::optional<Status> refused(rdma::VerbsCall call);
  Result<std::unique_ptr<rdma::MemoryRegion>> register_host(std::byte* memory, std::size_t size, bool in_order);

  FakeFabric& fabric_;
  const std::string name_;
  const std::shared_ptr<std::deque<rdma::AsyncEvent>> events_ = std::make_shared<std::deque<rdma::AsyncEvent>>();
  int descriptor_ = -1;
};

class FakeRegion final : public rdma::MemoryRegion {
 public:
  FakeRegion(FakeFabric& fabric, std::uint32_t key) : fabric_(fabric), key_(key) {}
  FakeRegion(const FakeRegion&) = delete;
  FakeRegion& operator=(const FakeRegion&) = delete;
  ~FakeRegion() override;
  [[nodiscard]] std::uint32_t local_key() const override { return key_; }
  [[nodiscard]] std::uint32_t remote_key() const override { return key_; }

 private:
  FakeFabric& fabric_;
  const std::uint32_t key_;
};

class FakeQueue final : public rdma::CompletionQueue {
 public:
  FakeQueue(FakeFabric& fabric, std::string device, std::uint32_t depth);
  FakeQueue(const FakeQueue&) = delete;
  FakeQueue& operator=(const FakeQueue&) = delete;
  ~FakeQueue() override;
  Result<std::size_t> poll(std::span<rdma::Completion> completions) override;
  Status arm() override;
  [[nodiscard]] int descriptor() const override { return queue_->descriptor; }
  void take_events() override;
  Status grow(std::uint32_t depth) override;

 private:
  friend class FakeDevice;
  FakeFabric& fabric_;
  const std::string device_;
  const std::shared_ptr<FakeFabric::Queue> queue_ = std::make_shared<FakeFabric::Queue>();
};

class FakePair final : public rdma::QueuePair {
 public:
  static constexpr std::uint32_t kMostInline = 220;

  FakePair(FakeFabric& fabric, std::string device, std::uint32_t number)
      : fabric_(fabric), device_(std::move(device)), number_(number) {}
  FakePair(const FakePair&) = delete;
  FakePair& operator=(const FakePair&) = delete;
  ~FakePair() override;
  [[nodiscard]] std::uint32_t number() const override { return number_; }
  [[nodiscard]] std::uint32_t most_inline() const override { return kMostInline; }
  Status prepare(const rdma::QueuePairPath& path) override;
  Status connect(const rdma::QueuePairPath& path) override;
  Result<std::size_t> post(std::span<const rdma::SendRequest> requests) override;
  Result<std::size_t> post(std::span<const rdma::ReceiveRequest> requests) override;
  void fail() override;

 private:
  FakeFabric& fabric_;
  const std::string device_;
  const std::uint32_t number_;
};

}  // namespace seto::support

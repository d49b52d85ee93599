#pragma once

#include "transports/rdma/verbs/libibverbs_device.h"

namespace seto::rdma {

class LibibverbsQueue final : public CompletionQueue {
 public:
  LibibverbsQueue(const LibibverbsDevice& device, abi::Channel* channel, abi::Queue* queue)
      : device_(device), channel_(channel), queue_(queue) {}
  LibibverbsQueue(const LibibverbsQueue&) = delete;
  LibibverbsQueue& operator=(const LibibverbsQueue&) = delete;
  ~LibibverbsQueue() override;

  Result<std::size_t> poll(std::span<Completion> completions) override;
  Status arm() override;
  [[nodiscard]] int descriptor() const override { return channel_->descriptor; }
  void take_events() override;
  Status grow(std::uint32_t depth) override;
  [[nodiscard]] abi::Queue* handle() const { return queue_; }

 private:
  const LibibverbsDevice& device_;
  abi::Channel* const channel_;
  abi::Queue* const queue_;
};

class LibibverbsPair final : public QueuePair {
 public:
  LibibverbsPair(const LibibverbsDevice& device, abi::Pair* pair, std::uint32_t most_inline)
      : device_(device), pair_(pair), most_inline_(most_inline) {}
  LibibverbsPair(const LibibverbsPair&) = delete;
  LibibverbsPair& operator=(const LibibverbsPair&) = delete;
  ~LibibverbsPair() override { device_.functions().ibv_destroy_qp(pair_); }

  [[nodiscard]] std::uint32_t number() const override { return pair_->number; }
  [[nodiscard]] std::uint32_t most_inline() const override { return most_inline_; }
  Status prepare(const QueuePairPath& path) override;
  Status connect(const QueuePairPath& path) override;
  Result<std::size_t> post(std::span<const SendRequest> requests) override;
  Result<std::size_t> post(std::span<const ReceiveRequest> requests) override;
  void fail() override;

 private:
  static constexpr std::size_t kBatch = 16;  // requests of one doorbell
  Result<std::size_t> post_batch(std::span<const SendRequest> requests);
  Result<std::size_t> post_batch(std::span<const ReceiveRequest> requests);

  const LibibverbsDevice& device_;
  abi::Pair* const pair_;
  const std::uint32_t most_inline_;
};

}  // namespace seto::rdma

#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "src/base/result.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// Takes the completions of one queue pair.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void completed(const Completion& completion) = 0;
};

// The completion queue of a progress context on one device, shared by its queue pairs. Its depth covers all requests of all
// of them, so it cannot overflow: it grows with them.
class Completions final {
 public:
  // At first, or less where the device allows less; it is enough for 56 channels of the usual size. Then as deep as the device
  // allows, at most kMostDepth: some tens of MiB. Drivers need a place more, and round up to a power of two.
  static constexpr std::uint32_t kFirstDepth = (1U << 14) - 1;
  static constexpr std::uint32_t kMostDepth = (1U << 19) - 1;

  static Result<std::unique_ptr<Completions>> create(VerbsDevice& device);

  // Reserves places for so many completions of a new queue pair. A failure: there are not so many left.
  Status reserve(std::uint32_t places);
  void give_back(std::uint32_t places) { reserved_ -= places; }
  void enter(std::uint32_t queue_pair, CompletionSink& sink) { sinks_[queue_pair] = &sink; }
  // Completions that are still to come are dropped.
  void leave(std::uint32_t queue_pair) { sinks_.erase(queue_pair); }

  // Hands out what has completed. True: something has. A failure is one of the whole device.
  Result<bool> poll();
  // The next completion makes descriptor() readable; the caller polls once more.
  Status arm();
  [[nodiscard]] int descriptor() const { return queue_->descriptor(); }
  [[nodiscard]] CompletionQueue& queue() { return *queue_; }

 private:
  static constexpr std::size_t kBatch = 32;
  // One call returns after so many batches, so that a fast peer cannot hold the progress token.
  static constexpr int kMostBatches = 8;

  Completions(std::unique_ptr<CompletionQueue> queue, std::uint32_t depth, std::uint32_t most)
      : queue_(std::move(queue)), depth_(depth), most_(most) {}

  const std::unique_ptr<CompletionQueue> queue_;
  std::uint32_t depth_;
  const std::uint32_t most_;
  std::uint32_t reserved_ = 0;
  std::unordered_map<std::uint32_t, CompletionSink*> sinks_;  // by the number of the queue pair
};

}  // namespace seto::rdma

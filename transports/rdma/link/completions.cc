#include "transports/rdma/link/completions.h"

#include <algorithm>
#include <array>

namespace seto::rdma {

Result<std::unique_ptr<Completions>> Completions::create(VerbsDevice& device) {
  SETO_ASSIGN(const DeviceFacts facts, device.facts());
  const std::uint32_t most = std::min(kMostDepth, facts.most_completions);
  const std::uint32_t depth = std::min(kFirstDepth, most);
  SETO_ASSIGN(std::unique_ptr<CompletionQueue> queue, device.create_completion_queue(depth));
  return std::unique_ptr<Completions>(new Completions(std::move(queue), depth, most));
}

// Twice as deep each time, because growing copies what waits in the queue.
Status Completions::reserve(std::uint32_t places) {
  const std::uint64_t wanted = std::uint64_t{reserved_} + places;
  if (wanted > most_)
    return failure(Code::unavailable, "the completion queue is full: too many peers of one device, which allows %u completions",
                   most_);
  if (wanted > depth_) {
    std::uint64_t depth = depth_;
    while (depth < wanted) depth = 2 * depth + 1;
    const auto next = static_cast<std::uint32_t>(std::min<std::uint64_t>(depth, most_));
    SETO_TRY(queue_->grow(next));
    depth_ = next;
  }
  reserved_ += places;
  return {};
}

Result<bool> Completions::poll() {
  std::array<Completion, kBatch> completions;
  bool any = false;
  for (int batch = 0; batch < kMostBatches; ++batch) {
    SETO_ASSIGN(const std::size_t count, queue_->poll(completions));
    for (std::size_t i = 0; i < count; ++i) {
      const auto sink = sinks_.find(completions[i].queue_pair);
      if (sink != sinks_.end()) sink->second->completed(completions[i]);
    }
    any = any || count > 0;
    if (count < kBatch) break;
  }
  return any;
}

Status Completions::arm() {
  queue_->take_events();
  return queue_->arm();
}

}  // namespace seto::rdma

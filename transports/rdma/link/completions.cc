#include "transports/rdma/link/completions.h"

#include <algorithm>
#include <array>

namespace seto::rdma {

Result<std::unique_ptr<Completions>> Completions::create(VerbsDevice& device) {
  SETO_ASSIGN(const DeviceFacts facts, device.facts());
  const std::uint32_t depth = std::min(kDepth, facts.most_completions);
  SETO_ASSIGN(std::unique_ptr<CompletionQueue> queue, device.create_completion_queue(depth));
  return std::unique_ptr<Completions>(new Completions(std::move(queue), depth));
}

bool Completions::reserve(std::uint32_t places) {
  if (places > depth_ - reserved_) return false;
  reserved_ += places;
  return true;
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

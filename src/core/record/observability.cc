#include "src/core/record/observability.h"

#include <ctime>
#include <utility>

#include "src/base/fork.h"

namespace seto {

std::uint64_t wall_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U + static_cast<std::uint64_t>(now.tv_nsec) / 1000U;
}

void Observability::start(const Communicator& communicator, const Config& config, DumpRequests* dumps, StatusListing* listing) {
  recorder_ = FlightRecorder(config.recorder);
  communicator_ = &communicator;
  dumps_after_failure_ = !config.dump_file.empty();
  if (listing != nullptr) listing->add(communicator);
  listing_ = listing;
  if (dumps == nullptr || (config.dump_file.empty() && config.dump_signal == 0)) return;
  dumps->add(communicator);
  dumps_ = dumps;
}

void Observability::stop() {
  if (process_was_forked()) return;
  if (listing_ != nullptr) std::exchange(listing_, nullptr)->remove(*communicator_);
  if (dumps_ != nullptr) std::exchange(dumps_, nullptr)->remove(*communicator_);
}

void Observability::failed() {
  failed_at_us_.store(wall_us(), std::memory_order_release);
  if (dumps_ == nullptr || process_was_forked() || !dumps_after_failure_) return;
  dumps_->request(*communicator_);
}

}  // namespace seto

#include "src/core/seeing.h"

#include <ctime>

#include "src/base/fork.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_writer.h"

namespace seto {

std::uint64_t wall_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U + static_cast<std::uint64_t>(now.tv_nsec) / 1000U;
}

Status Seeing::prepare(const Config& config) {
  if (config.dump_signal == 0) return {};
  return DumpService::of_process().listen_to(static_cast<int>(config.dump_signal));
}

void Seeing::start(const Communicator& communicator) {
  recorder_ = Recorder(communicator.config().recorder);
  if (communicator.config().dump_file.empty() && communicator.config().dump_signal == 0) return;
  DumpService::of_process().add(communicator);
  communicator_ = &communicator;
}

void Seeing::stop() {
  if (communicator_ == nullptr || process_was_forked()) return;
  DumpService::of_process().remove(*communicator_);
  communicator_ = nullptr;
}

void Seeing::failed() {
  failed_at_us_.store(wall_us(), std::memory_order_release);
  if (communicator_ == nullptr || process_was_forked() || communicator_->config().dump_file.empty()) return;
  DumpService::of_process().request(*communicator_);
}

}  // namespace seto

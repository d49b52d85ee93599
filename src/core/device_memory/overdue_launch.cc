#include "src/core/device_memory/overdue_launch.h"

#include <utility>

namespace seto {
namespace {

constexpr std::uint64_t kAnswerMs = 10'000;

}  // namespace

void OverdueLaunch::stop(const Launches::State& state, std::string relay_waits) {
  launches_.stop();
  state_ = state;
  relay_waits_ = std::move(relay_waits);
  until_ = Deadline::after_ms(kAnswerMs);
}

std::optional<kernels::StopReport> OverdueLaunch::report() const {
  if (state_->shape->transfers != nullptr) return {};  // their lanes report elsewhere, and all before the kernel ends
  return launches_.stopped_at(state_->program);
}

bool OverdueLaunch::has_answered(const Launches::State& now) {
  const bool has_ended = now.shape == nullptr || now.launch != state_->launch || now.program != state_->program;
  if (has_ended || now.kernel_has_ended || report() || until_.passed()) return true;
  launches_.stop();  // again: a kernel that lends ends later than the first time
  return false;
}

std::string OverdueLaunch::waits() const {
  const std::optional<kernels::StopReport> stopped = report();
  if (!relay_waits_.empty() && (!stopped || stopped->operand == kernels::kWaitsForDone)) return relay_waits_;
  return stopped ? state_->shape->wait_text(*stopped) : "waits for no peer in its kernel";
}

}  // namespace seto

#include "src/engine/relay/gpu_slots.h"

#include <string>

#include "src/base/check.h"
#include "src/base/clock.h"

namespace seto {

void SlotCopy::begin(std::span<const Part> parts) {
  SETO_CHECK(!is_under_way());
  parts_.assign(parts.begin(), parts.end());
  state_.store(State::none, std::memory_order_release);
}

bool SlotCopy::is_overdue() const {
  return state() == State::under_way && monotonic_ns() - since_ns_.load(std::memory_order_relaxed) > kLongestNs;
}

Status SlotCopy::why() const {
  if (state() == State::failed)
    return failure(Code::unavailable,
                   "a message in memory of the GPU could not be copied to the host, where no RDMA device reads it now: %s; "
                   "SETO_GPUDIRECT=off keeps messages in memory of the host",
                   std::string(failure_.text()).c_str());
  if (is_overdue())
    return failure(
        Code::timeout,
        "the driver has not copied a message in memory of the GPU to the host within %llu s: a stream of the program may "
        "hold up its copies; SETO_GPUDIRECT=off keeps messages in memory of the host",
        static_cast<unsigned long long>(kLongestNs / 1'000'000'000));
  return {};
}

void SlotCopy::end(const Status& status) {
  failure_ = status;
  state_.store(status.ok() ? State::there : State::failed, std::memory_order_release);
}

Result<const std::byte*> SlotCopy::bring(const std::byte* place) {
  State expected = State::none;
  if (state() == State::none) since_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  if (state_.compare_exchange_strong(expected, State::under_way, std::memory_order_acq_rel)) slots_.copy(shared_from_this());
  SETO_TRY(why());
  return brought(place);
}

const std::byte* SlotCopy::brought(const std::byte* place) const {
  return state() == State::there ? slots_.host() + (place - slots_.memory()) : nullptr;
}

}  // namespace seto

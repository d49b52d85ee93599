#include "transports/resume/pinned_frames.h"

#include <algorithm>

namespace seto::resume {

void PinnedFrames::pin(PayloadRetention& kept, std::uint64_t number, std::uint64_t end, std::uint64_t now_ns) {
  if (count_ == frames_.size()) {
    std::rotate(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(first_), frames_.end());
    first_ = 0;
    frames_.resize(std::max<std::size_t>(16, 2 * count_));
  }
  kept.pin(number);
  frames_[(first_ + count_++) % frames_.size()] = {number, end, now_ns};
}

bool PinnedFrames::released(PayloadRetention& kept, std::uint64_t end) {
  bool any = false;
  for (; count_ > 0 && frames_[first_].end <= end; --count_, any = true) {
    kept.unpin(frames_[first_].number);
    first_ = (first_ + 1) % frames_.size();
  }
  return any;
}

}  // namespace seto::resume

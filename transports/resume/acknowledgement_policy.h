#pragma once

#include <algorithm>
#include <cstdint>

namespace seto::resume {

// When a receiver tells what it has heard, in a frame of its own. Such a frame has no number: a numbered one would be
// acknowledged in turn, and two idle ends would never stop. It is never sent again; the next one says more. The number in the
// header of other frames is an addition, and delays no frame.
class AcknowledgementPolicy final {
 public:
  static constexpr std::uint64_t kParts = 8;  // of a window: the sender never runs dry for want of an acknowledgement
  static constexpr std::uint64_t kLongestNs = 10'000'000;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  explicit AcknowledgementPolicy(std::uint64_t window) : window_(window) {}
  void set_window(std::uint64_t window) { window_ = window; }

  // A frame of so many bytes, its header included, has come whole for the first time.
  void arrived(std::uint64_t bytes, std::uint64_t now_ns) {
    if (bytes_ == 0) due_ns_ = std::min(due_ns_, now_ns + kLongestNs);
    bytes_ += bytes;
    if (bytes_ >= std::max<std::uint64_t>(1, window_ / kParts)) due_ns_ = 0;
  }
  // The last acknowledgement may be lost, because a path broke or a frame came again: it is due at once.
  void tell_again() { due_ns_ = 0; }
  void told() {
    bytes_ = 0;
    due_ns_ = kNever;
  }
  // When an acknowledgement is due; kNever: the sender knows everything.
  [[nodiscard]] std::uint64_t due_ns() const { return due_ns_; }
  [[nodiscard]] bool due(std::uint64_t now_ns) const { return due_ns_ != kNever && now_ns >= due_ns_; }

 private:
  std::uint64_t window_;
  std::uint64_t bytes_ = 0;
  std::uint64_t due_ns_ = kNever;
};

}  // namespace seto::resume

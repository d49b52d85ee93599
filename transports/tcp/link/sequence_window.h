#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto::tcp {

// Which frames of a peer have arrived. Over several sockets frames overtake each other, so numbers beyond a gap are remembered,
// one bit each: no allocation while frames arrive.
class SequenceWindow final {
 public:
  // Numbers that may arrive while an earlier one is missing. 0: every number must follow the one before it.
  explicit SequenceWindow(std::size_t beyond) : bits_((beyond + kBits - 1) / kBits) {}

  // All frames up to this one have arrived completely.
  [[nodiscard]] std::uint64_t all_up_to() const { return all_up_to_; }
  [[nodiscard]] bool has(std::uint64_t sequence) const {
    return sequence <= all_up_to_ || (!bits_.empty() && within(sequence) && (word(sequence) & bit(sequence)) != 0);
  }
  // A frame of that number may come now.
  [[nodiscard]] bool within(std::uint64_t sequence) const {
    return sequence == all_up_to_ + 1 || (sequence > all_up_to_ && sequence - all_up_to_ <= bits_.size() * kBits);
  }
  // The frame has arrived completely. Only for a number within() that the window does not have().
  void add(std::uint64_t sequence) {
    if (sequence != all_up_to_ + 1) {
      word(sequence) |= bit(sequence);
      return;
    }
    ++all_up_to_;
    while (!bits_.empty() && (word(all_up_to_ + 1) & bit(all_up_to_ + 1)) != 0) {
      ++all_up_to_;
      word(all_up_to_) &= ~bit(all_up_to_);
    }
  }

 private:
  static constexpr std::size_t kBits = 64;

  static std::uint64_t bit(std::uint64_t sequence) { return std::uint64_t{1} << (sequence % kBits); }
  std::uint64_t& word(std::uint64_t sequence) { return bits_[sequence / kBits % bits_.size()]; }
  [[nodiscard]] const std::uint64_t& word(std::uint64_t sequence) const { return bits_[sequence / kBits % bits_.size()]; }

  std::vector<std::uint64_t> bits_;  // a ring, by number
  std::uint64_t all_up_to_ = 0;
};

}  // namespace seto::tcp

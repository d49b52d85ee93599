#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/resume/heard.h"

namespace seto::resume {

// The numbers of frames that have arrived whole: one bit each beyond a gap, so nothing is allocated while frames arrive.
class ReceivedFrames final {
 public:
  // Numbers that may arrive while an earlier one is missing, rounded up to 64.
  explicit ReceivedFrames(std::size_t beyond);

  [[nodiscard]] std::uint64_t all_up_to() const { return all_up_to_; }
  [[nodiscard]] bool has(std::uint64_t number) const {
    return number <= all_up_to_ || (within(number) && (words_[word_of(number)] & bit_of(number)) != 0);
  }
  // A frame of that number may arrive now.
  [[nodiscard]] bool within(std::uint64_t number) const {
    return number > all_up_to_ && number - all_up_to_ <= words_.size() * kBits;
  }
  // The frame has arrived whole. Only for a number that is within() and that has() does not know.
  void add(std::uint64_t number);
  // With the lowest ranges, if there are more than fit: the sender has kept those frames longest.
  [[nodiscard]] Heard heard() const;

 private:
  static constexpr std::size_t kBits = 64;

  static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << (number % kBits); }
  [[nodiscard]] std::size_t word_of(std::uint64_t number) const { return number / kBits % words_.size(); }
  // The first number from there on, up to `last`, whose bit is `set`; last + 1: none.
  [[nodiscard]] std::uint64_t find(std::uint64_t from, std::uint64_t last, bool set) const;

  std::vector<std::uint64_t> words_;  // a ring, by number
  std::uint64_t all_up_to_ = 0;
  std::uint64_t last_ = 0;  // the largest that has arrived
};

}  // namespace seto::resume

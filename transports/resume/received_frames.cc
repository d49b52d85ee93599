#include "transports/resume/received_frames.h"

#include <algorithm>
#include <bit>

namespace seto::resume {

ReceivedFrames::ReceivedFrames(std::size_t beyond) : words_(std::max<std::size_t>(1, (beyond + kBits - 1) / kBits)) {}

void ReceivedFrames::add(std::uint64_t number) {
  last_ = std::max(last_, number);
  if (number != all_up_to_ + 1) {
    words_[word_of(number)] |= bit_of(number);
    return;
  }
  all_up_to_ = find(number + 1, last_, false) - 1;
  for (std::uint64_t each = number + 1; each <= all_up_to_;) {
    if (each % kBits == 0 && all_up_to_ - each >= kBits) {
      words_[word_of(each)] = 0;
      each += kBits;
    } else {
      words_[word_of(each)] &= ~bit_of(each);
      ++each;
    }
  }
}

std::uint64_t ReceivedFrames::find(std::uint64_t from, std::uint64_t last, bool set) const {
  while (from <= last) {
    const std::uint64_t word = set ? words_[word_of(from)] : ~words_[word_of(from)];
    const std::uint64_t rest = word >> (from % kBits);
    if (rest != 0) return std::min(last + 1, from + static_cast<std::uint64_t>(std::countr_zero(rest)));
    from += kBits - from % kBits;
  }
  return last + 1;
}

Heard ReceivedFrames::heard() const {
  Heard heard;
  heard.all_up_to = all_up_to_;
  for (std::uint64_t at = all_up_to_ + 1; heard.count < Heard::kMostRanges;) {
    const std::uint64_t first = find(at, last_, true);
    if (first > last_) break;
    at = find(first, last_, false);
    heard.ranges[heard.count++] = {first, at - 1};
  }
  return heard;
}

}  // namespace seto::resume

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace seto::testing {

// Applies the input of a fuzzer to bytes in flight. Nonces are random, so recorded bytes alone would be rejected early. For each
// message: a byte below 128 is a number of changes, each a position and a mask; from 128 on, it is a number of bytes of the input
// that replace the message.
class Altered final {
 public:
  Altered(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  [[nodiscard]] std::string on_the_way(std::string message) {
    if (message.empty()) return message;
    const unsigned what = next();
    if (what >= 128) {
      std::string instead;
      for (unsigned count = 0; count < (what - 127) * 4; ++count) instead += static_cast<char>(next());
      changed_ = changed_ || instead != message;
      return instead;
    }
    const std::string before = message;
    for (unsigned count = 0; count < what; ++count) {
      const std::size_t place = (next() | next() << 8) % message.size();
      message[place] = static_cast<char>(static_cast<unsigned>(message[place]) ^ next());
    }
    changed_ = changed_ || message != before;
    return message;
  }

  // The size of the next piece in which the message arrives.
  [[nodiscard]] std::size_t part_of(std::size_t size) {
    return std::max<std::size_t>(1, std::min<std::size_t>(size, 255 - next()));
  }

  [[nodiscard]] bool changed() const { return changed_; }

 private:
  unsigned next() { return at_ < size_ ? data_[at_++] : 0; }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
  bool changed_ = false;
};

}  // namespace seto::testing

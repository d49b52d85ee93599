#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace seto::soak {

// A buffer of a call with a margin on both sides, and what it must hold when the call has ended: bytes that nobody was to write
// stay what they were.
class Area final {
 public:
  // At an address that suits elements of `element` bytes and nothing wider; the key says which, and whose memory it is.
  Area(std::size_t elements, std::size_t element, std::uint64_t key);

  [[nodiscard]] std::byte* at(std::size_t index) const { return memory_.get() + begin_ + index * element_; }
  [[nodiscard]] std::span<std::byte> expected(std::size_t index, std::size_t count) {
    return std::span(expected_).subspan(begin_ + index * element_, count * element_);
  }
  // What is expected so far becomes what the buffer holds.
  void fill() const;
  // Empty if all is as expected; else where the first difference is.
  [[nodiscard]] std::string difference() const;

 private:
  struct Release {
    bool of_library;
    void operator()(std::byte* memory) const;
  };
  std::size_t element_;
  std::size_t begin_;
  std::vector<std::byte> expected_;
  std::unique_ptr<std::byte[], Release> memory_{nullptr, Release{false}};
};

}  // namespace seto::soak

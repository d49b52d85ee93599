#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace seto::soak {

// A buffer of a call with a margin on both sides, and the expected content when the call has ended. Bytes outside the result must
// not change.
class Area final {
 public:
  // The address suits elements of `element` bytes and nothing wider. The key selects the address, and whether setoMemAlloc
  // provides the memory.
  Area(std::size_t elements, std::size_t element, std::uint64_t key);

  [[nodiscard]] std::byte* at(std::size_t index) const { return memory_.get() + begin_ + index * element_; }
  [[nodiscard]] std::span<std::byte> expected(std::size_t index, std::size_t count) {
    return std::span(expected_).subspan(begin_ + index * element_, count * element_);
  }
  // Fills the buffer with the content that is expected so far.
  void fill() const;
  // Returns the first difference from the expected content; empty if there is none.
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

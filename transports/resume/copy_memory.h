#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace seto::resume {

// The longest payload of a frame.
inline constexpr std::size_t kLongestPayload = std::size_t{256} << 10;

// Memory for copies of payloads that a sender must keep, of all connections of a context, in sizes of powers of two. Blocks that
// came back are used again before new ones are allocated. Not thread safe.
class CopyMemory final {
 public:
  explicit CopyMemory(std::size_t limit) : limit_(limit) {}
  CopyMemory(const CopyMemory&) = delete;
  CopyMemory& operator=(const CopyMemory&) = delete;
  ~CopyMemory();

  // Null: out of memory, or beyond the limit of what may be in use at once. Up to kLongestPayload bytes.
  [[nodiscard]] std::byte* take(std::size_t size);
  void give_back(std::byte* memory, std::size_t size);
  [[nodiscard]] std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kClasses = 11;                  // 256 bytes to kLongestPayload
  static constexpr std::size_t kKept = std::size_t{32} << 20;  // bytes that wait for their next use

  std::array<std::vector<std::byte*>, kClasses> free_;
  std::size_t limit_;
  std::size_t in_use_ = 0;
  std::size_t kept_ = 0;
};

// Bytes without a meaning: a path sends them for the rest of a frame that the peer has had whole from another one.
[[nodiscard]] const std::byte* filler();

}  // namespace seto::resume

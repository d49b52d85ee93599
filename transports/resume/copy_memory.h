#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace seto::resume {

// The longest payload of a frame.
inline constexpr std::size_t kLongestPayload = std::size_t{256} << 10;

// Where the blocks come from. A NIC reads registered memory only, so its transport has a source of its own.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // At least 64 bytes aligned. Null: out of memory.
  virtual std::byte* allocate(std::size_t size) = 0;
  virtual void release(std::byte* block, std::size_t size) = 0;
};

// Memory for copies of payloads that a sender must keep, of all connections of a context, in sizes of powers of two. Blocks that
// came back are used again before new ones are allocated. Not thread safe.
class CopyMemory final {
 public:
  // Blocks of the heap, or of a source that outlives this object.
  explicit CopyMemory(std::size_t limit, BlockSource* source = nullptr) : source_(source), limit_(limit) {}
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

  void release(std::byte* block, std::size_t size);

  std::array<std::vector<std::byte*>, kClasses> free_;
  BlockSource* source_;
  std::size_t limit_;
  std::size_t in_use_ = 0;
  std::size_t kept_ = 0;
};

// Bytes without a meaning: a path sends them for the rest of a frame that the peer has had whole from another one.
[[nodiscard]] const std::byte* filler();

}  // namespace seto::resume

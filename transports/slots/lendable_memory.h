#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace seto::slots {

// Memory of one process that other processes of the host may map, as it is mapped here. All of it is one file, and a message in
// it is named by its offset, because its address differs from process to process. Any thread reads it.
class LendableMemory {
 public:
  // Null: this process has not mapped it.
  [[nodiscard]] const std::byte* data() const { return data_.load(std::memory_order_acquire); }

  // The offset of these bytes; empty: they are not all in this memory.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const std::byte* first, std::uint64_t bytes) const {
    const std::byte* const begin = data();
    const auto offset = reinterpret_cast<std::uintptr_t>(first) - reinterpret_cast<std::uintptr_t>(begin);
    if (begin == nullptr || first < begin || !within(offset, bytes)) return std::nullopt;
    return offset;
  }
  // The address of these bytes; null: they are not all in this memory.
  [[nodiscard]] const std::byte* at(std::uint64_t offset, std::uint64_t bytes) const {
    const std::byte* const begin = data();
    return begin != nullptr && within(offset, bytes) ? begin + offset : nullptr;
  }

  void set(const std::byte* data, std::uint64_t size) {
    size_.store(size, std::memory_order_relaxed);
    data_.store(data, std::memory_order_release);
  }

 private:
  [[nodiscard]] bool within(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t size = size_.load(std::memory_order_relaxed);
    return bytes <= size && offset <= size - bytes;
  }

  std::atomic<const std::byte*> data_{nullptr};
  std::atomic<std::uint64_t> size_{0};
};

// Another process of the host, as a partner in lending.
class LendingPartner {
 public:
  virtual ~LendingPartner() = default;
  // The memory of that process.
  [[nodiscard]] const LendableMemory& theirs() const { return theirs_; }
  // That process has mapped the memory of this one.
  [[nodiscard]] bool reads_ours() const { return reads_ours_.load(std::memory_order_acquire); }
  // Asks that process to map the memory of this one. Called on the data path as long as reads_ours() is false: it neither blocks
  // nor allocates memory.
  virtual void offer() = 0;

 protected:
  LendableMemory theirs_;
  std::atomic<bool> reads_ours_{false};
};

}  // namespace seto::slots

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace seto::api {

// The live handles of one kind. A pointer that the user passes is looked up here before it is used, because it may be garbage, or
// the memory behind it may have been freed. A look-up takes no lock: entries are used again, but never freed.
class LiveHandles final {
 public:
  constexpr LiveHandles() = default;
  LiveHandles(const LiveHandles&) = delete;
  LiveHandles& operator=(const LiveHandles&) = delete;

  void add(const void* handle);
  // Does nothing if the handle is not there.
  void remove(const void* handle) noexcept;

  [[nodiscard]] bool contains(const void* handle) const {
    if (handle == nullptr) return false;
    for (const Entry* entry = first(handle).load(std::memory_order_acquire); entry != nullptr; entry = entry->next)
      if (entry->handle.load(std::memory_order_relaxed) == handle) return true;
    return false;
  }

 private:
  static constexpr int kBucketBits = 10;

  struct Entry {
    std::atomic<const void*> handle;  // null: unused
    Entry* const next;
  };
  using Bucket = std::atomic<Entry*>;

  static std::size_t bucket_of(const void* handle) {
    return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15 >> (64 - kBucketBits));
  }
  [[nodiscard]] const Bucket& first(const void* handle) const { return buckets_[bucket_of(handle)]; }
  Entry* find(const void* handle, const void* value);

  std::mutex mutex_;  // of those that add or remove
  std::array<Bucket, std::size_t{1} << kBucketBits> buckets_{};
};

}  // namespace seto::api

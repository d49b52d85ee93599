#include "src/api/support/live_handles.h"

namespace seto::api {

// The entry with this value in the bucket of the handle, or null.
LiveHandles::Entry* LiveHandles::find(const void* handle, const void* value) {
  Entry* entry = buckets_[bucket_of(handle)].load(std::memory_order_relaxed);
  while (entry != nullptr && entry->handle.load(std::memory_order_relaxed) != value) entry = entry->next;
  return entry;
}

void LiveHandles::add(const void* handle) {
  const std::lock_guard lock(mutex_);
  if (Entry* const unused = find(handle, nullptr); unused != nullptr) {
    unused->handle.store(handle, std::memory_order_relaxed);
    return;
  }
  Bucket& bucket = buckets_[bucket_of(handle)];
  bucket.store(new Entry{handle, bucket.load(std::memory_order_relaxed)}, std::memory_order_release);
}

void LiveHandles::remove(const void* handle) noexcept {
  const std::lock_guard lock(mutex_);
  if (Entry* const entry = find(handle, handle); entry != nullptr) entry->handle.store(nullptr, std::memory_order_relaxed);
}

}  // namespace seto::api

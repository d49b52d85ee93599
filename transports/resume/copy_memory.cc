#include "transports/resume/copy_memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "src/base/check.h"

namespace seto::resume {
namespace {

constexpr std::size_t kSmallest = 256;
constexpr std::align_val_t kAlignment{64};

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kSmallest)); }
std::size_t class_of(std::size_t rounded_size) { return static_cast<std::size_t>(std::countr_zero(rounded_size / kSmallest)); }

// Never written, and not constant: so it uses neither memory nor room in the library's file.
alignas(64) std::byte filler_bytes[kLongestPayload];

}  // namespace

CopyMemory::~CopyMemory() {
  for (std::size_t each = 0; each < kClasses; ++each)
    for (std::byte* const memory : free_[each]) release(memory, kSmallest << each);
}

void CopyMemory::release(std::byte* block, std::size_t size) {
  if (source_ != nullptr) return source_->release(block, size);
  ::operator delete(block, kAlignment);
}

std::byte* CopyMemory::take(std::size_t size) {
  SETO_CHECK(size <= kLongestPayload);
  const std::size_t needed = rounded(size);
  if (needed > limit_ - std::min(limit_, in_use_)) return nullptr;
  std::vector<std::byte*>& free = free_[class_of(needed)];
  std::byte* memory = nullptr;
  if (!free.empty()) {
    memory = free.back();
    free.pop_back();
    kept_ -= needed;
  } else if (source_ != nullptr) {
    memory = source_->allocate(needed);
  } else {
    memory = static_cast<std::byte*>(::operator new(needed, kAlignment, std::nothrow));
  }
  if (memory != nullptr) in_use_ += needed;
  return memory;
}

void CopyMemory::give_back(std::byte* memory, std::size_t size) {
  const std::size_t needed = rounded(size);
  in_use_ -= needed;
  if (kept_ + needed > kKept) return release(memory, needed);
  kept_ += needed;
  free_[class_of(needed)].push_back(memory);
}

const std::byte* filler() { return filler_bytes; }

}  // namespace seto::resume

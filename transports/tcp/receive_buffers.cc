#include "transports/tcp/receive_buffers.h"

#include <algorithm>
#include <bit>
#include <new>

namespace seto::tcp {
namespace {

constexpr std::size_t kSmallest = 256;

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kSmallest)); }

std::size_t class_of(std::size_t rounded_size) { return static_cast<std::size_t>(std::countr_zero(rounded_size / kSmallest)); }

void release(std::byte* memory) { ::operator delete (memory, std::align_val_t{Landing::kAlignment}); }

}  // namespace

Landing::~Landing() {
  for (std::vector<std::byte*>& each : free_)
    for (std::byte* memory : each) release(memory);
}

std::byte* Landing::take(std::size_t size) {
  const std::size_t rounded_size = rounded(size);
  const std::size_t which = class_of(rounded_size);
  if (which >= kClasses || rounded_size > limit_ - std::min(limit_, in_use_)) return nullptr;
  std::byte* memory = nullptr;
  if (!free_[which].empty()) {
    memory = free_[which].back();
    free_[which].pop_back();
    kept_ -= rounded_size;
  } else {
    memory = static_cast<std::byte*>(::operator new (rounded_size, std::align_val_t{kAlignment}, std::nothrow));
  }
  if (memory != nullptr) in_use_ += rounded_size;
  return memory;
}

void Landing::give_back(std::byte* memory, std::size_t size) {
  const std::size_t rounded_size = rounded(size);
  in_use_ -= rounded_size;
  if (kept_ + rounded_size > kKept) return release(memory);
  kept_ += rounded_size;
  free_[class_of(rounded_size)].push_back(memory);
}

}  // namespace seto::tcp

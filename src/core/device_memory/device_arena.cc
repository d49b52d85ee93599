#include "src/core/device_memory/device_arena.h"

#include <algorithm>
#include <iterator>

namespace seto {

DeviceArena::~DeviceArena() {
  for (const cuda::DevicePointer piece : pieces_) {
    if (memory_ == ArenaMemory::device)
      static_cast<void>(driver_.mem_free.code(piece));
    else
      static_cast<void>(driver_.mem_free_host.code(reinterpret_cast<void*>(piece)));
  }
}

Status DeviceArena::prepare() {
  SETO_ASSIGN(const cuda::DevicePointer pointer, allocate(1));
  release(pointer);
  return {};
}

Result<cuda::DevicePointer> DeviceArena::take_piece(std::size_t size) {
  cuda::DevicePointer begin = 0;
  void* pinned = nullptr;
  if (memory_ == ArenaMemory::device) {
    SETO_TRY(driver_.mem_alloc(&begin, size));
  } else {
    SETO_TRY(driver_.mem_host_alloc(&pinned, size, cuda::kHostAllocPortable));
    begin = reinterpret_cast<cuda::DevicePointer>(pinned);
  }
  pieces_.push_back(begin);
  return begin;
}

Result<cuda::DevicePointer> DeviceArena::allocate(std::size_t size) {
  const std::size_t whole = (std::max<std::size_t>(size, 1) + kAlignment - 1) / kAlignment * kAlignment;
  auto place = std::find_if(free_.begin(), free_.end(), [&](const auto& one) { return one.second >= whole; });
  if (place == free_.end()) {
    const std::size_t piece = std::max(whole, kPiece);
    SETO_ASSIGN(const cuda::DevicePointer begin, take_piece(piece));
    place = free_.emplace(begin, piece).first;
  }
  const auto [begin, free] = *place;
  free_.erase(place);
  if (free > whole) free_.emplace(begin + whole, free - whole);
  used_.emplace(begin, whole);
  return begin;
}

// Joins what is free side by side. Pieces of the driver that happen to touch are joined, too, which does no harm.
void DeviceArena::release(cuda::DevicePointer pointer) {
  const auto used = used_.find(pointer);
  if (used == used_.end()) return;
  auto here = free_.emplace(pointer, used->second).first;
  used_.erase(used);
  if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here == free_.begin()) return;
  const auto before = std::prev(here);
  if (before->first + before->second != here->first) return;
  before->second += here->second;
  free_.erase(here);
}

}  // namespace seto

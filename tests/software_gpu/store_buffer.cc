#include "tests/software_gpu/store_buffer.h"

#include <algorithm>
#include <utility>

namespace seto::software_gpu {

void PendingStore::overlay(std::uint64_t first, std::uint32_t size, unsigned char* into) const {
  unsigned char own[16];
  std::memcpy(own, &bits.low, 8);
  std::memcpy(own + 8, &bits.high, 8);
  const std::uint64_t begin = std::max(first, address);
  const std::uint64_t end = std::min(first + size, address + bytes);
  if (begin < end) std::memcpy(into + (begin - first), own + (begin - address), end - begin);
}

void PendingStore::overlay(std::uint64_t first, std::uint32_t size, unsigned char* into, WriteRef* source) const {
  overlay(first, size, into);
  if (source == nullptr || !overlaps(first, size)) return;
  *source = address == first && bytes == size ? write : nullptr;
}

void StoreBuffer::add(const PendingStore& store) {
  stores_.push_back(store);
  if (store.kind != PendingStore::Kind::store) ++fences_;
  if (store.kind != PendingStore::Kind::fence) ++counts_[slot_of(store.address)];
}

PendingStore StoreBuffer::take(std::size_t position) {
  PendingStore store = std::move(stores_[position]);
  stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(position));
  if (store.kind != PendingStore::Kind::store) --fences_;
  if (store.kind != PendingStore::Kind::fence) --counts_[slot_of(store.address)];
  return store;
}

void StoreBuffer::overlay(std::uint64_t address, std::uint32_t size, unsigned char* into, WriteRef* source) const {
  if (!may_overlap(address)) return;
  for (const PendingStore& store : stores_) store.overlay(address, size, into, source);
}

std::size_t StoreBuffer::after_last_overlap(std::uint64_t address, std::uint32_t size) const {
  if (may_overlap(address)) {
    for (std::size_t i = stores_.size(); i > 0; --i)
      if (stores_[i - 1].overlaps(address, size)) return i;
  }
  return 0;
}

std::size_t StoreBuffer::first_before(std::size_t position) const {
  const PendingStore& chosen = stores_[position];
  for (std::size_t i = 0; i < position; ++i) {
    const PendingStore& earlier = stores_[i];
    if (earlier.kind == PendingStore::Kind::fence || earlier.overlaps(chosen.address, chosen.bytes)) return i;
  }
  return position;
}

}  // namespace seto::software_gpu

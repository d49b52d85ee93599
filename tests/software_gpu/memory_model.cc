#include "tests/software_gpu/memory_model.h"

#include <algorithm>
#include <atomic>

#include "tests/software_gpu/raw_memory.h"

namespace seto::software_gpu {
namespace {

Bits128 loaded(const unsigned char* bytes) {
  Bits128 value;
  std::memcpy(&value.low, bytes, 8);
  std::memcpy(&value.high, bytes + 8, 8);
  return value;
}

}  // namespace

void MemoryModel::start_thread(MemoryView& thread, Clock launched) {
  thread.known = thread.started = {launched, launched};
  thread.seen.clear();
}

Bits128 MemoryModel::load(MemoryView& thread, const MemoryAccess& access, WriteRef* source) {
  const auto [address, bytes, order, scope] = access;
  if (!settings_.weak) {
    if (source != nullptr) *source = sources_.at(address, bytes);
    return read_raw(address, bytes);
  }
  ++now_;
  Horizon must_see = order == Order::read_only ? thread.started : thread.known;
  if (order != Order::read_only) must_see.raise(seen_before(thread, address));
  Reading reading{.source = source};
  read_below_block(thread, access, must_see, reading);
  thread.parent->stores.overlay(address, bytes, reading.bytes, source);
  thread.stores.overlay(address, bytes, reading.bytes, source);
  if (is_strong(order)) seen_at(thread, address).raise(reading.saw);
  if (acquires(order)) acquire(thread, scope);
  return loaded(reading.bytes);
}

void MemoryModel::store(MemoryView& thread, const MemoryAccess& access, Bits128 value, const WriteRef& write) {
  if (!settings_.weak) {
    write_raw(access.address, value, access.bytes);
    sources_.set(access.address, access.bytes, write);
    return;
  }
  thread.stores.add({.kind = releases(access.order) ? PendingStore::Kind::release : PendingStore::Kind::store,
                     .scope = access.scope,
                     .bytes = access.bytes,
                     .block = thread.block,
                     .address = access.address,
                     .bits = value,
                     .write = write});
  while (thread.stores.size() > kThreadStores)
    leave_thread(thread, random_.below(static_cast<std::uint32_t>(thread.stores.size())));
}

void MemoryModel::before_shared_store(MemoryView& thread, Order order) {
  if (releases(order) || (is_strong(order) && thread.stores.has_fence())) empty_thread(thread);
}

void MemoryModel::after_shared_load(MemoryView& thread, Order order) {
  if (settings_.weak && acquires(order)) acquire(thread, Scope::block);
}

std::uint64_t MemoryModel::update(MemoryView& thread, const MemoryAccess& access, const AtomicUpdate& update,
                                  const WriteRef& write, WriteRef& source) {
  if (!settings_.weak) return update_in_system(thread, access, update, write, source);
  const auto [address, bytes, order, scope] = access;
  ++now_;
  MemoryView& block = *thread.parent;
  MemoryView& gpu = *block.parent;
  const std::size_t first =
      thread.stores.has_fence() || releases(order) ? thread.stores.size() : thread.stores.after_last_overlap(address, bytes);
  for (std::size_t left = first; left > 0; --left) leave_thread(thread, 0);
  if (releases(order)) empty_block(block, scope);
  std::uint64_t old = 0;
  if (scope != Scope::block)
    for (std::size_t left = block.stores.after_last_overlap(address, bytes); left > 0; --left) leave_block(block, 0);
  if (scope == Scope::system) {
    for (std::size_t left = gpu.stores.after_last_overlap(address, bytes); left > 0; --left) leave_gpu(gpu, 0);
    old = update_in_system(thread, access, update, write, source);
  } else {
    old = newest(thread, access, source);
    const std::uint64_t changed = update.compute(old, update.first, update.second) & low_mask(bytes);
    const bool is_told_apart = write != nullptr && update.writes(old);
    if (changed != old || is_told_apart) {
      place(block, {.bytes = bytes, .block = thread.block, .address = address, .bits = {changed, 0}, .write = write}, scope);
    }
  }
  seen_at(thread, address).raise({now_, now_});
  if (acquires(order)) acquire(thread, scope);
  return old;
}

void MemoryModel::fence(MemoryView& thread, Order order, Scope scope) {
  if (!settings_.weak) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  ++now_;
  MemoryView& block = *thread.parent;
  if (order == Order::sequential) {
    empty_thread(thread);
    empty_block(block, scope);
  } else if (!thread.stores.empty() || !block.stores.empty() || !block.parent->stores.empty()) {
    thread.stores.add({.kind = PendingStore::Kind::fence, .scope = scope, .block = thread.block});
  }
  acquire(thread, scope);
}

// Reads what the GPU and the system hold. The versions of a location are, from the oldest: what overwrites replaced, system
// memory, the stores that wait in the GPU. The youngest versions may be overlooked, down to one that the thread must see.
void MemoryModel::read_below_block(const MemoryView& thread, const MemoryAccess& access, const Horizon& must_see,
                                   Reading& reading) {
  const std::uint64_t address = access.address;
  const std::uint32_t bytes = access.bytes;
  Horizon& saw = reading.saw;
  const MemoryView& gpu = *thread.parent->parent;
  const std::vector<Overwrite>* overwrites = history_.of(address);
  const bool looks_back = random_.one_in(settings_.stale_one_in);
  std::size_t shown = gpu.stores.size();
  bool overlooks_all = true;
  if (gpu.stores.may_overlap(address)) {
    for (; shown > 0 && looks_back; --shown) {
      const PendingStore& store = gpu.stores.at(shown - 1);
      if (store.overlaps(address, bytes) &&
          (store.block == thread.block || store.visible_in_gpu <= must_see.gpu || random_.one_in(4)))
        break;
    }
    for (std::size_t i = 0; i < shown; ++i) {
      if (gpu.stores.at(i).overlaps(address, bytes)) {
        overlooks_all = false;
        saw.gpu = std::max(saw.gpu, gpu.stores.at(i).visible_in_gpu);
      }
    }
  }
  read_system(access, reading);
  std::size_t kept = overwrites == nullptr ? 0 : overwrites->size();
  for (; kept > 0 && looks_back && overlooks_all; --kept) {
    const Overwrite& last = (*overwrites)[kept - 1];
    const PendingStore replaced{.bytes = last.bytes, .address = last.address, .bits = last.old, .write = last.old_write};
    if (!replaced.overlaps(address, bytes)) continue;
    const bool is_near = last.gpu == thread.gpu;
    if (last.block == thread.block ||
        (is_near ? last.visible_in_gpu <= must_see.gpu : last.visible_in_system <= must_see.system) || random_.one_in(4))
      break;
    replaced.overlay(address, bytes, reading.bytes, reading.source);
  }
  for (std::size_t i = 0; i < kept; ++i) {
    const Overwrite& overwrite = (*overwrites)[i];
    if (overwrite.address < address + bytes && address < overwrite.address + overwrite.bytes) {
      Clock& domain = overwrite.gpu == thread.gpu ? saw.gpu : saw.system;
      domain = std::max(domain, overwrite.gpu == thread.gpu ? overwrite.visible_in_gpu : overwrite.visible_in_system);
    }
  }
  for (std::size_t i = 0; i < shown; ++i) gpu.stores.at(i).overlay(address, bytes, reading.bytes, reading.source);
}

void MemoryModel::read_system(const MemoryAccess& access, Reading& reading) const {
  const Bits128 current = read_raw(access.address, access.bytes);
  std::memcpy(reading.bytes, &current.low, 8);
  std::memcpy(reading.bytes + 8, &current.high, 8);
  if (reading.source != nullptr) *reading.source = sources_.at(access.address, access.bytes);
}

std::uint64_t MemoryModel::newest(const MemoryView& thread, const MemoryAccess& access, WriteRef& source) const {
  Reading reading{.source = &source};
  read_system(access, reading);
  const MemoryView& block = *thread.parent;
  block.parent->stores.overlay(access.address, access.bytes, reading.bytes, &source);
  if (access.scope == Scope::block) block.stores.overlay(access.address, access.bytes, reading.bytes, &source);
  return loaded(reading.bytes).low;
}

// Also a weak load never goes back behind what a strong load of its location has returned.
Horizon MemoryModel::seen_before(const MemoryView& thread, std::uint64_t address) {
  const std::uint64_t granule = History::granule_of(address);
  const auto found = std::find_if(thread.seen.begin(), thread.seen.end(),
                                  [granule](const SeenLocation& location) { return location.granule == granule; });
  return found == thread.seen.end() ? Horizon{} : found->horizon;
}

Horizon& MemoryModel::seen_at(MemoryView& thread, std::uint64_t address) {
  const std::uint64_t granule = History::granule_of(address);
  for (SeenLocation& location : thread.seen)
    if (location.granule == granule) return location.horizon;
  if (thread.seen.size() == kSeenLocations) {  // rather too much is known than a list without end
    for (const SeenLocation& location : thread.seen) thread.known.raise(location.horizon);
    thread.seen.clear();
  }
  return thread.seen.emplace_back(SeenLocation{granule, {}}).horizon;
}

// Raises what the thread knows, by an acquire of a scope. Its block and its GPU pass that on to acquires of smaller scope there.
void MemoryModel::acquire(MemoryView& thread, Scope scope) {
  MemoryView& block = *thread.parent;
  MemoryView& gpu = *block.parent;
  if (scope == Scope::block)
    thread.known.raise(block.known);
  else
    thread.known.raise({now_, scope == Scope::system ? now_ : gpu.known.system});
  block.known.raise(thread.known);
  gpu.known.raise(thread.known);
  if (scope == Scope::system) thread.seen.clear();  // all of it is known now
}

// Stores on their way.

void MemoryModel::advance(MemoryView& thread) {
  if (!settings_.weak) return;
  const auto chosen = [&](const StoreBuffer& stores) { return random_.below(static_cast<std::uint32_t>(stores.size())); };
  MemoryView& block = *thread.parent;
  MemoryView& gpu = *block.parent;
  if (!thread.stores.empty() && random_.one_in(settings_.laziness)) leave_thread(thread, chosen(thread.stores));
  if (!block.stores.empty() && random_.one_in(settings_.laziness)) leave_block(block, chosen(block.stores));
  if (!gpu.stores.empty() && random_.one_in(settings_.laziness)) leave_gpu(gpu, chosen(gpu.stores));
}

void MemoryModel::leave_thread(MemoryView& thread, std::size_t position) {
  position = thread.stores.first_before(position);
  if (thread.stores.at(position).kind != PendingStore::Kind::store)
    for (; position > 0; --position) leave_thread(thread, 0);
  const PendingStore store = thread.stores.take(position);
  MemoryView& block = *thread.parent;
  switch (store.kind) {
    case PendingStore::Kind::store:
      place(block, store, Scope::block);
      return;
    case PendingStore::Kind::release:
      empty_block(block, store.scope);
      place(block, store, store.scope);
      return;
    case PendingStore::Kind::fence:
      empty_block(block, store.scope);
  }
}

void MemoryModel::leave_block(MemoryView& block, std::size_t position) {
  place_in_gpu(*block.parent, block.stores.take(block.stores.first_before(position)));
}

void MemoryModel::leave_gpu(MemoryView& gpu, std::size_t position) {
  place_in_system(gpu, gpu.stores.take(gpu.stores.first_before(position)));
}

// Makes a store visible at a scope, without a stop on the way. Nothing of the same address waits below that scope.
void MemoryModel::place(MemoryView& block, PendingStore store, Scope scope) {
  store.kind = PendingStore::Kind::store;
  if (scope == Scope::block) {
    block.stores.add(store);
    while (block.stores.size() > kBlockStores) leave_block(block, random_.below(static_cast<std::uint32_t>(block.stores.size())));
    return;
  }
  if (scope == Scope::gpu) {
    place_in_gpu(*block.parent, store);
    return;
  }
  store.visible_in_gpu = ++now_;
  place_in_system(*block.parent, store);
}

void MemoryModel::place_in_gpu(MemoryView& gpu, PendingStore store) {
  store.visible_in_gpu = ++now_;
  gpu.stores.add(store);
  while (gpu.stores.size() > kGpuStores) leave_gpu(gpu, random_.below(static_cast<std::uint32_t>(gpu.stores.size())));
}

void MemoryModel::place_in_system(const MemoryView& gpu, const PendingStore& store) {
  history_.add({.address = store.address,
                .bytes = store.bytes,
                .gpu = gpu.gpu,
                .block = store.block,
                .old = read_raw(store.address, store.bytes),
                .old_write = sources_.at(store.address, store.bytes),
                .visible_in_gpu = store.visible_in_gpu,
                .visible_in_system = ++now_});
  write_raw(store.address, store.bits, store.bytes);
  sources_.set(store.address, store.bytes, store.write);
}

void MemoryModel::empty_thread(MemoryView& thread) {
  while (!thread.stores.empty()) leave_thread(thread, 0);
}

void MemoryModel::empty_block(MemoryView& block, Scope scope) {
  if (scope == Scope::block) return;
  while (!block.stores.empty()) leave_block(block, 0);
  if (scope == Scope::system) empty_gpu(*block.parent);
}

void MemoryModel::empty_gpu(MemoryView& gpu) {
  while (!gpu.stores.empty()) leave_gpu(gpu, 0);
}

std::uint64_t MemoryModel::update_in_system(const MemoryView& thread, const MemoryAccess& access, const AtomicUpdate& update,
                                            const WriteRef& write, WriteRef& source) {
  const std::uint64_t address = access.address;
  const std::uint32_t bytes = access.bytes;
  source = sources_.at(address, bytes);
  for (;;) {
    const std::uint64_t old = read_raw(address, bytes).low;
    const std::uint64_t changed = update.compute(old, update.first, update.second) & low_mask(bytes);
    if (!exchange_raw(address, old, changed, bytes)) continue;  // another process was faster
    if (settings_.weak && changed != old) {
      ++now_;
      history_.add({.address = address,
                    .bytes = bytes,
                    .gpu = thread.gpu,
                    .block = thread.block,
                    .old = {old, 0},
                    .old_write = source,
                    .visible_in_gpu = now_,
                    .visible_in_system = now_});
    }
    if (update.writes(old)) sources_.set(address, bytes, write);
    return old;
  }
}

}  // namespace seto::software_gpu

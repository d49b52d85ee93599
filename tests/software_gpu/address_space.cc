#include "tests/software_gpu/address_space.h"

#include <string>
#include <vector>

#include "tests/software_gpu/block.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/report_text.h"
#include "tests/software_gpu/thread.h"

namespace seto::software_gpu {
namespace {

Location resolved(const Thread& thread, const Instruction& in) {
  const std::uint64_t address = thread.bits(in.base) + in.offset;
  if (in.space == Space::shared) return {Space::shared, address & 0xFFFFFFFFU};  // addresses of this space may be 32 bits wide
  if (in.space != Space::generic) return {in.space, address & ~kWindowMask};
  switch (address & kWindowMask) {
    case kSharedWindow:
      return {Space::shared, address & ~kWindowMask};
    case kLocalWindow:
      return {Space::local, address & ~kWindowMask};
    case kParamWindow:
      return {Space::param, address & ~kWindowMask};
    default:
      return {Space::global, address};
  }
}

std::vector<std::byte>& bytes_of(Thread& thread, Space space) {
  return space == Space::shared ? thread.block.shared : space == Space::local ? thread.locals : thread.params;
}

RaceCheck::Access race_access(Thread& thread, const Instruction& in, const Location& location, std::uint32_t bytes) {
  return {.shared = location.space == Space::shared ? &thread.block.order : nullptr,
          .address = location.address,
          .bytes = bytes,
          .order = in.order,
          .scope = in.scope,
          .line = in.line};
}

bool is_checked(Thread& thread, const Location& location) {
  return (location.space == Space::global || location.space == Space::shared) && thread.block.machine.races().enabled();
}

}  // namespace

Location checked_location(Thread& thread, const Instruction& in, std::uint32_t bytes, bool writes) {
  const Location location = resolved(thread, in);
  if ((location.address & (bytes - 1)) != 0) {
    throw Fault(FaultKind::misaligned,
                "an access of " + std::to_string(bytes) + " bytes at " + hexadecimal(location.address) + " is not aligned");
  }
  if (location.space == Space::global || location.space == Space::constant) {
    thread.block.machine.addresses().check(location.address, bytes, thread.block.place.gpu, writes);
    return location;
  }
  if (const std::size_t size = bytes_of(thread, location.space).size(); location.address + bytes > size) {
    const char* name = location.space == Space::shared ? "shared" : location.space == Space::local ? "local" : "param";
    throw Fault(FaultKind::out_of_bounds, std::to_string(bytes) + " bytes at " + hexadecimal(location.address) +
                                              " are outside the " + std::to_string(size) + " bytes of " + name + " memory");
  }
  return location;
}

Bits128 load_from(Thread& thread, const Instruction& in, const Location& location, std::uint32_t bytes) {
  MemoryModel& memory = thread.block.machine.memory();
  const bool is_tracked = is_checked(thread, location) && is_strong(in.order);
  WriteRef source;
  Bits128 value;
  if (location.space == Space::global || location.space == Space::constant) {
    value = memory.load(thread.memory, {location.address, bytes, in.order, in.scope}, is_tracked ? &source : nullptr);
    if (!is_strong(in.order)) thread.block.machine.addresses().count_read(bytes);
  } else {
    unsigned char copy[16] = {};
    std::memcpy(copy, bytes_of(thread, location.space).data() + location.address, bytes);
    std::memcpy(&value.low, copy, 8);
    std::memcpy(&value.high, copy + 8, 8);
    if (location.space == Space::shared) memory.after_shared_load(thread.memory, in.order);
    if (location.space == Space::shared && is_tracked) source = thread.block.order.shared_sources.at(location.address, bytes);
  }
  if (is_checked(thread, location))
    thread.block.machine.races().read(thread.order, race_access(thread, in, location, bytes), source);
  if (is_strong(in.order)) thread.end_turn();  // the thread may be polling
  return value;
}

void store_to(Thread& thread, const Instruction& in, const Location& location, Bits128 value, std::uint32_t bytes) {
  WriteRef write;
  if (is_checked(thread, location))
    write = thread.block.machine.races().write(thread.order, race_access(thread, in, location, bytes));
  MemoryModel& memory = thread.block.machine.memory();
  if (location.space == Space::global) {
    memory.store(thread.memory, {location.address, bytes, in.order, in.scope}, value, write);
    AddressMap& addresses = thread.block.machine.addresses();
    if (!is_strong(in.order)) addresses.count_written(bytes);
    if (in.order == Order::release) addresses.count_release(thread.block.place.gpu);
    return;
  }
  unsigned char copy[16];
  std::memcpy(copy, &value.low, 8);
  std::memcpy(copy + 8, &value.high, 8);
  std::memcpy(bytes_of(thread, location.space).data() + location.address, copy, bytes);
  if (location.space == Space::shared) {
    thread.block.order.shared_sources.set(location.address, bytes, write);
    memory.before_shared_store(thread.memory, in.order);
  }
}

std::uint64_t update_at(Thread& thread, const Instruction& in, const Location& location, const AtomicUpdate& update) {
  const std::uint32_t bytes = size_of(in.type);
  Machine& machine = thread.block.machine;
  const RaceCheck::Access access = race_access(thread, in, location, bytes);
  std::shared_ptr<StrongWrite> write;
  if (machine.races().enabled()) write = machine.races().begin_update(thread.order, access);
  WriteRef source;
  std::uint64_t old = 0;
  if (location.space == Space::global) {
    old = machine.memory().update(thread.memory, {location.address, bytes, in.order, in.scope}, update, write, source);
  } else {  // shared memory is strong: the lanes run one after another
    WriteSources& sources = thread.block.order.shared_sources;
    std::byte* place = thread.block.shared.data() + location.address;
    std::memcpy(&old, place, bytes);
    machine.memory().before_shared_store(thread.memory, in.order);
    const std::uint64_t changed = update.compute(old, update.first, update.second);
    std::memcpy(place, &changed, bytes);
    machine.memory().after_shared_load(thread.memory, in.order);
    source = sources.at(location.address, bytes);
    if (update.writes(old)) sources.set(location.address, bytes, write);
  }
  if (write != nullptr) machine.races().end_update(thread.order, access, source, *write);
  return old;
}

}  // namespace seto::software_gpu

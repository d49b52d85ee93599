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

RaceDetector::Access race_access(const Thread& thread, const Instruction& in, bool writes) {
  return {.thread = thread.index, .writes = writes, .strong = in.order >= Order::relaxed, .line = in.line};
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
  RaceDetector& races = thread.block.races;
  Bits128 value;
  if (location.space == Space::global || location.space == Space::constant) {
    value = thread.block.machine.memory().load(thread.memory, location.address, bytes, in.order, in.scope);
  } else {
    unsigned char copy[16] = {};
    std::memcpy(copy, bytes_of(thread, location.space).data() + location.address, bytes);
    std::memcpy(&value.low, copy, 8);
    std::memcpy(&value.high, copy + 8, 8);
    if (location.space == Space::shared) {
      races.access(race_access(thread, in, false), location.address, bytes);
      thread.block.machine.memory().after_shared_load(thread.memory, in.order);
    }
  }
  if (in.order >= Order::relaxed) {
    races.observe(thread.index, location.address);
    if (in.order == Order::acquire) races.acquire(thread.index);
    thread.end_turn();  // the thread may be polling
  }
  return value;
}

void store_to(Thread& thread, const Instruction& in, const Location& location, Bits128 value, std::uint32_t bytes) {
  RaceDetector& races = thread.block.races;
  if (in.order >= Order::relaxed) {
    if (in.order == Order::release) races.release(thread.index);
    races.publish(thread.index, location.address);
  }
  if (location.space == Space::global) {
    thread.block.machine.memory().store(thread.memory, location.address, value, bytes, in.order, in.scope);
    return;
  }
  unsigned char copy[16];
  std::memcpy(copy, &value.low, 8);
  std::memcpy(copy + 8, &value.high, 8);
  std::memcpy(bytes_of(thread, location.space).data() + location.address, copy, bytes);
  if (location.space == Space::shared) {
    races.access(race_access(thread, in, true), location.address, bytes);
    thread.block.machine.memory().before_shared_store(thread.memory, in.order);
  }
}

}  // namespace seto::software_gpu

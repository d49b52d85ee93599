#include "src/core/host_stream/stream_table.h"

#include <algorithm>

namespace seto {
namespace {

// generation << 32 | slot << 4 | kMark: never null, never CUDA's 1 or 2, never an aligned pointer.
constexpr std::uint64_t kMark = 0xb;
constexpr std::size_t kMostStreams = std::size_t{1} << 20;

StreamTable::Handle handle_of(std::size_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(slot) << 4 | kMark;
}

}  // namespace

// Never destroyed: streams that a program does not destroy may still run during exit.
StreamTable& StreamTable::of_process() {
  static auto* const streams = new StreamTable();
  return *streams;
}

Result<StreamTable::Handle> StreamTable::create() {
  const std::lock_guard lock(mutex_);
  auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& p) { return p.stream == nullptr; });
  if (slot == slots_.end()) {
    if (slots_.size() == kMostStreams)
      return failure(Code::unavailable, "%zu host streams exist already; destroy some", kMostStreams);
    slot = slots_.emplace(slots_.end());
  }
  ++slot->generation;
  slot->stream = std::make_shared<HostStream>();
  return handle_of(static_cast<std::size_t>(slot - slots_.begin()), slot->generation);
}

Result<std::shared_ptr<HostStream>> StreamTable::find(Handle handle) const {
  const std::lock_guard lock(mutex_);
  return find_locked(handle);
}

Result<std::shared_ptr<HostStream>> StreamTable::find_locked(Handle handle) const {
  const std::size_t slot = (handle & 0xffffffffU) >> 4;
  if (slot >= slots_.size() || slots_[slot].stream == nullptr || handle_of(slot, slots_[slot].generation) != handle)
    return failure(Code::invalid_argument,
                   "stream: %#llx is not a host stream; was it destroyed? (CUDA streams need a device communicator)",
                   static_cast<unsigned long long>(handle));
  return slots_[slot].stream;
}

Status StreamTable::destroy(Handle handle) {
  std::shared_ptr<HostStream> stream;
  {
    const std::lock_guard lock(mutex_);
    SETO_ASSIGN(stream, find_locked(handle));
    slots_[(handle & 0xffffffffU) >> 4].stream = nullptr;
  }
  (void)stream->wait(stream->position(), Deadline::never());
  return {};
}

}  // namespace seto

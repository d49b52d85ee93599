#include "src/core/host_stream/stream_table.h"

#include <algorithm>

namespace seto {
namespace {

// generation << 32 | place << 4 | kMark: never null, never CUDA's 1 or 2, never an aligned pointer.
constexpr std::uint64_t kMark = 0xb;
constexpr std::size_t kMostStreams = std::size_t{1} << 20;

HostStreams::Handle handle_of(std::size_t place, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(place) << 4 | kMark;
}

}  // namespace

// Never destroyed: streams that a program leaves behind may still run while it exits.
HostStreams& HostStreams::of_process() {
  static auto* const streams = new HostStreams();
  return *streams;
}

Result<HostStreams::Handle> HostStreams::create() {
  const std::lock_guard lock(mutex_);
  auto place = std::find_if(places_.begin(), places_.end(), [](const Place& p) { return p.stream == nullptr; });
  if (place == places_.end()) {
    if (places_.size() == kMostStreams)
      return failure(Code::unavailable, "%zu host streams exist already; destroy some", kMostStreams);
    place = places_.emplace(places_.end());
  }
  ++place->generation;
  place->stream = std::make_shared<HostStream>();
  return handle_of(static_cast<std::size_t>(place - places_.begin()), place->generation);
}

Result<std::shared_ptr<HostStream>> HostStreams::find(Handle handle) const {
  const std::lock_guard lock(mutex_);
  return find_locked(handle);
}

Result<std::shared_ptr<HostStream>> HostStreams::find_locked(Handle handle) const {
  const std::size_t place = (handle & 0xffffffffU) >> 4;
  if (place >= places_.size() || places_[place].stream == nullptr || handle_of(place, places_[place].generation) != handle)
    return failure(Code::invalid_argument,
                   "stream: %#llx is no host stream; was it destroyed? (CUDA streams need a device communicator)",
                   static_cast<unsigned long long>(handle));
  return places_[place].stream;
}

Status HostStreams::destroy(Handle handle) {
  std::shared_ptr<HostStream> stream;
  {
    const std::lock_guard lock(mutex_);
    SETO_ASSIGN(stream, find_locked(handle));
    places_[(handle & 0xffffffffU) >> 4].stream = nullptr;
  }
  (void)stream->wait(stream->position(), Deadline::never());
  return {};
}

}  // namespace seto

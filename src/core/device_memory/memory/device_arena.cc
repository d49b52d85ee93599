#include "src/core/device_memory/memory/device_arena.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

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

// Graphs and launches under way use what was given before, so it is not released. Doubling bounds the loss.
Result<std::uint64_t> DeviceArena::grow(GrowingMemory& memory, std::size_t size) {
  if (size <= memory.size) return memory.address;
  const std::size_t whole = std::bit_ceil(size);
  SETO_ASSIGN(memory.address, allocate(whole));
  memory.size = whole;
  return memory.address;
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

Result<std::shared_ptr<DeviceResiduals>> DeviceResiduals::create(std::shared_ptr<GpuContext> gpu, cuda::DevicePointer address,
                                                                 std::size_t size) {
  std::shared_ptr<DeviceResiduals> made(new DeviceResiduals(std::move(gpu), address, size));
  SETO_TRY(made->gpu_->driver().event_create(&made->last_, cuda::kEventDisableTiming));
  return made;
}

template <class Work>
Status DeviceResiduals::run(const Work& work) {
  if (has_ended_) return failure(Code::invalid_usage, "errorFeedback: its communicator was ended, and with it memory of the GPU");
  if (size_ == 0) return {};
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  const cuda::Driver& driver = gpu_->driver();
  cuda::Stream stream = nullptr;
  SETO_TRY(driver.stream_create_with_priority(&stream, cuda::kStreamNonBlocking, 0));
  Status status = work(driver, stream);
  if (status.ok()) status = driver.stream_synchronize(stream);
  static_cast<void>(driver.stream_destroy.code(stream));
  return status;
}

bool DeviceResiduals::is_used() {
  const std::lock_guard lock(mutex_);
  if (has_ended_ || !is_launched_) return false;
  const ContextScope scope(*gpu_);
  return scope.status().ok() && gpu_->driver().event_query.code(last_) == cuda::DriverCode::not_ready;
}

Status DeviceResiduals::clear() {
  const std::lock_guard lock(mutex_);
  is_clear_ = true;
  return {};
}

Status DeviceResiduals::read(std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  if (is_clear_) {
    std::fill(into.begin(), into.end(), std::byte{0});
    return {};
  }
  return run([&](const cuda::Driver& driver, cuda::Stream stream) {
    return driver.memcpy_dtoh_async(into.data(), address_, into.size(), stream);
  });
}

Status DeviceResiduals::write(std::span<const std::byte> from) {
  const std::lock_guard lock(mutex_);
  SETO_TRY(run([&](const cuda::Driver& driver, cuda::Stream stream) {
    return driver.memcpy_htod_async(address_, from.data(), from.size(), stream);
  }));
  is_clear_ = false;
  return {};
}

// In the stream of the call: a stream of the library's own might share a queue of the hardware with work that waits for this
// rank.
Status DeviceResiduals::before_launch(cuda::Stream stream) {
  const std::lock_guard lock(mutex_);
  if (is_clear_ && size_ > 0) SETO_TRY(gpu_->driver().memset_d8_async(address_, 0, size_, stream));
  is_clear_ = false;
  return {};
}

Status DeviceResiduals::after_launch(cuda::Stream stream) {
  const std::lock_guard lock(mutex_);
  SETO_TRY(gpu_->driver().event_record(last_, stream));
  is_launched_ = true;
  return {};
}

// Not in the graph, which would clear them at each replay.
Status DeviceResiduals::before_capture() {
  const std::lock_guard lock(mutex_);
  is_in_graph_ = true;
  if (is_clear_)
    SETO_TRY(run([&](const cuda::Driver& driver, cuda::Stream own) { return driver.memset_d8_async(address_, 0, size_, own); }));
  is_clear_ = false;
  return {};
}

void DeviceResiduals::end() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_ended_, true)) static_cast<void>(gpu_->driver().event_destroy.code(last_));
}

}  // namespace seto

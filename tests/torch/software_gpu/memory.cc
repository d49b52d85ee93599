#include "tests/torch/software_gpu/memory.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/torch/software_gpu/devices.h"

namespace seto::torch_tests {
namespace {

constexpr std::size_t kSmallest = 512;

struct Block {
  c10::DeviceIndex device = 0;
  std::size_t size = 0;
  std::set<std::pair<c10::DeviceIndex, c10::StreamId>> uses;
  std::vector<cuda::Event> ends;  // of the uses, once it was freed
};

// Memory of the device is never given back to the driver: a freed block serves the next request of its size, the last one first.
class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::DeviceIndex device = current_device();
    const c10::Device place(c10::kCUDA, device);
    if (bytes == 0) return {nullptr, nullptr, &give_back, place};
    const std::size_t size = std::max(kSmallest, std::bit_ceil(bytes));
    const std::lock_guard lock(mutex_);
    if (!captures()) reuse_ended();
    auto& free = free_[{device, size}];
    if (free.empty()) {
      cuda::DevicePointer made = 0;
      must(driver_on(device).mem_alloc(&made, size));
      auto* const pointer = reinterpret_cast<void*>(made);
      blocks_[pointer] = {device, size, {}, {}};
      free.push_back(pointer);
    }
    void* const pointer = free.back();
    free.pop_back();
    return {pointer, pointer, &give_back, place};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const c10::DeviceIndex device = current_device();
    must(driver_on(device).memcpy_dtod_async(reinterpret_cast<cuda::DevicePointer>(to),
                                             reinterpret_cast<cuda::DevicePointer>(from), bytes,
                                             handle_of(current_stream(device))));
  }

  void record_use(const void* pointer, const c10::Stream& stream) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blocks_.find(pointer); found != blocks_.end())
      found->second.uses.insert({stream.device_index(), stream.id()});
  }

 private:
  static void give_back(void* pointer);

  void free_block(void* pointer) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(pointer);
    for (const auto& [device, number] : std::exchange(block.uses, {})) {
      cuda::Event end = nullptr;
      must(driver_on(device).event_create(&end, cuda::kEventDisableTiming));
      must(driver().event_record(end, handle_of(stream_of(device, number))));
      block.ends.push_back(end);
    }
    if (block.ends.empty())
      free_[{block.device, block.size}].push_back(pointer);
    else
      waiting_.push_back(pointer);
  }

  void reuse_ended() {
    std::erase_if(waiting_, [&](void* pointer) {
      Block& block = blocks_.at(pointer);
      std::erase_if(block.ends, [&](cuda::Event end) {
        if (driver_on(block.device).event_query.code(end) == cuda::DriverCode::not_ready) return false;
        must(driver().event_destroy(end));
        return true;
      });
      if (block.ends.empty()) free_[{block.device, block.size}].push_back(pointer);
      return block.ends.empty();
    });
  }

  std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::map<std::pair<c10::DeviceIndex, std::size_t>, std::vector<void*>> free_;
  std::vector<void*> waiting_;  // freed blocks with uses that have not ended
};

Memory& own() {
  static auto* const only = new Memory;
  return *only;
}

void Memory::give_back(void* pointer) {
  if (pointer != nullptr) own().free_block(pointer);
}

}  // namespace

c10::Allocator* memory() { return &own(); }

void register_memory() { c10::SetAllocator(c10::kCUDA, &own()); }

void record_use(const void* pointer, const c10::Stream& stream) { own().record_use(pointer, stream); }

}  // namespace seto::torch_tests

#include "tests/software_gpu/driver/multicast_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/fault.h"

namespace seto::software_gpu::driver {
namespace {

constexpr std::uint64_t kMagic = 0x6D756C7469636173;
constexpr std::size_t kMostBindings = 128;

enum State : std::uint32_t { kFree, kChanging, kBound };

}  // namespace

struct MulticastObject::Binding {
  std::atomic<std::uint32_t> state;
  std::uint32_t gpu;
  std::int32_t process;  // that has the memory file open
  std::int32_t file;     // its descriptor there
  std::uint64_t inode;
  std::uint64_t offset, memory_offset, bytes;

  [[nodiscard]] bool holds(std::uint64_t first, std::uint64_t count) const {
    return state.load(std::memory_order_acquire) == kBound && first >= offset && first + count <= offset + bytes;
  }
};

// Processes share it. A slot of the table is claimed by one exchange, so a process that dies holds no lock.
struct MulticastObject::Shared {
  std::uint64_t magic;
  std::uint64_t bytes;  // of each GPU
  std::uint32_t gpus;
  std::atomic<std::uint64_t> added;  // a bit for each GPU
  std::array<Binding, kMostBindings> bindings;
};

std::uint64_t inode_of(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

std::shared_ptr<MulticastObject> MulticastObject::create(std::uint32_t gpus, std::uint64_t bytes, const MemoryTable& table) {
  const int file = memfd_create("software_gpu_multicast", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
    throw DriverError(DriverCode::operating_system, std::string("memfd_create: ") + std::strerror(errno));
  std::shared_ptr<MulticastObject> made(new MulticastObject(file, table));
  made->shared_->bytes = bytes;
  made->shared_->gpus = gpus;
  made->shared_->magic = kMagic;
  return made;
}

std::shared_ptr<MulticastObject> MulticastObject::open(int file, const MemoryTable& table) {
  std::array<char, 64> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (readlink(link.c_str(), name.data(), name.size() - 1) < 0) return nullptr;
  if (!std::string(name.data()).starts_with("/memfd:software_gpu_multicast")) return nullptr;
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (own < 0) throw DriverError(DriverCode::operating_system, std::string("descriptor: ") + std::strerror(errno));
  return std::shared_ptr<MulticastObject>(new MulticastObject(own, table));
}

MulticastObject::MulticastObject(int file, const MemoryTable& table) : table_(table), file_(file) {
  void* const mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) throw DriverError(DriverCode::map_failed, std::string("mmap: ") + std::strerror(errno));
  shared_ = static_cast<Shared*>(mapped);
}

MulticastObject::~MulticastObject() {
  for (const auto& [inode, one] : others_) munmap(reinterpret_cast<void*>(one.address), one.bytes);
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  ::close(file_);
}

std::shared_ptr<PhysicalMemory> MulticastObject::memory_of(const std::shared_ptr<MulticastObject>& object, bool exportable) {
  auto memory = std::make_shared<PhysicalMemory>();
  memory->file = fcntl(object->file_, F_DUPFD_CLOEXEC, 0);
  if (memory->file < 0) throw DriverError(DriverCode::operating_system, std::string("descriptor: ") + std::strerror(errno));
  memory->bytes = object->shared_->bytes;
  memory->exportable = exportable;
  memory->counted = false;
  memory->multicast = object;
  return memory;
}

void MulticastObject::add(std::uint32_t gpu) {
  const std::uint64_t bit = std::uint64_t{1} << gpu;
  for (std::uint64_t added = shared_->added.load();;) {
    if ((added & bit) != 0) throw DriverError(DriverCode::invalid_device, "the GPU was added before");
    if (std::popcount(added) == static_cast<int>(shared_->gpus))
      throw DriverError(DriverCode::invalid_value, "the object has all of its GPUs");
    if (shared_->added.compare_exchange_weak(added, added | bit)) return;
  }
}

bool MulticastObject::has(std::uint32_t gpu) const { return ((shared_->added.load() >> gpu) & 1) != 0; }

bool MulticastObject::is_complete() const { return std::popcount(shared_->added.load()) == static_cast<int>(shared_->gpus); }

void MulticastObject::bind(std::uint64_t offset, const std::shared_ptr<PhysicalMemory>& memory, std::uint64_t memory_offset,
                           std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = MemoryTable::kGranularity;
  if (offset % kUnit != 0 || memory_offset % kUnit != 0 || bytes % kUnit != 0 || bytes == 0)
    throw DriverError(DriverCode::invalid_value, "the places and the size must be multiples of 2 MiB");
  if (offset + bytes > shared_->bytes || memory_offset + bytes > memory->bytes)
    throw DriverError(DriverCode::invalid_value, "the range is beyond the object or the memory");
  if (!has(memory->gpu)) throw DriverError(DriverCode::invalid_device, "the memory is on a GPU that was not added");
  for (const Binding& one : shared_->bindings)
    if (one.state.load(std::memory_order_acquire) == kBound && one.gpu == memory->gpu && one.offset < offset + bytes &&
        offset < one.offset + one.bytes)
      throw DriverError(DriverCode::invalid_value, "memory of this GPU is bound there");
  for (Binding& one : shared_->bindings) {
    std::uint32_t expected = kFree;
    if (!one.state.compare_exchange_strong(expected, kChanging)) continue;
    one.gpu = memory->gpu;
    one.process = getpid();
    one.file = memory->file;
    one.inode = memory->inode;
    one.offset = offset;
    one.memory_offset = memory_offset;
    one.bytes = bytes;
    one.state.store(kBound, std::memory_order_release);
    bound_.push_back(memory);
    return;
  }
  throw DriverError(DriverCode::out_of_memory, "the stand-in has no room for further bindings of a multicast object");
}

void MulticastObject::unbind(std::uint32_t gpu, std::uint64_t offset, std::uint64_t bytes) {
  for (Binding& one : shared_->bindings) {
    if (one.state.load(std::memory_order_acquire) != kBound || one.gpu != gpu || one.offset != offset || one.bytes != bytes)
      continue;
    std::erase_if(bound_, [&](const std::shared_ptr<PhysicalMemory>& memory) { return memory->inode == one.inode; });
    one.state.store(kFree, std::memory_order_release);
    return;
  }
  throw DriverError(DriverCode::invalid_value, "no memory of the GPU was bound with this place and size");
}

void MulticastObject::map_bound() {
  for (const Binding& one : shared_->bindings)
    if (one.state.load(std::memory_order_acquire) == kBound) static_cast<void>(address_of(one));
}

std::vector<std::uint64_t> MulticastObject::at(std::uint64_t offset, std::uint32_t bytes) {
  std::vector<std::uint64_t> places;
  for (const Binding& one : shared_->bindings)
    if (one.holds(offset, bytes)) places.push_back(address_of(one) + one.memory_offset + (offset - one.offset));
  if (places.size() != shared_->gpus)
    throw Fault(FaultKind::out_of_bounds, "the multicast object has memory of " + std::to_string(places.size()) + " of its " +
                                              std::to_string(shared_->gpus) + " GPUs at this place");
  return places;
}

// The begin of the memory in this process. The memory model knows a location by its address, so the one that kernels use is taken
// where there is one.
std::uint64_t MulticastObject::address_of(const Binding& binding) {
  if (const std::uint64_t mapped = table_.mapped_at(binding.inode, binding.memory_offset); mapped != 0)
    return mapped - binding.memory_offset;
  if (const auto known = others_.find(binding.inode); known != others_.end()) return known->second.address;
  const std::string path = "/proc/" + std::to_string(binding.process) + "/fd/" + std::to_string(binding.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  void* mapped = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 && status.st_ino == binding.inode)
    mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) ::close(file);
  if (mapped == MAP_FAILED)
    throw Fault(FaultKind::out_of_bounds, "memory that another process has bound to a multicast object is gone");
  return (others_[binding.inode] = {reinterpret_cast<std::uint64_t>(mapped), static_cast<std::uint64_t>(status.st_size)}).address;
}

}  // namespace seto::software_gpu::driver

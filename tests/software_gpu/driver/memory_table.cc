#include "tests/software_gpu/driver/memory_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/exporter.h"
#include "tests/software_gpu/driver/multicast_object.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu::driver {
namespace {

constexpr const char* kFileName = "software_gpu";
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostPoisoned = 16ULL << 20;
constexpr int kPoison = 0xA5;
constexpr std::uint64_t kAllGpus = ~std::uint64_t{0};

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }  // device addresses are those of the process

std::uint64_t map_memory(std::uint64_t at, std::uint64_t bytes, int protection, int file, std::uint64_t offset) {
  const int flags = (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED) | (at != 0 ? MAP_FIXED : 0);
  void* const mapped = mmap(pointer_to(at), bytes, protection, flags, file, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) throw DriverError(DriverCode::map_failed, std::string("mmap: ") + std::strerror(errno));
  return reinterpret_cast<std::uint64_t>(mapped);
}

std::string name_of(const Range& range) {
  switch (range.kind) {
    case Range::Kind::host:
      return "pinned host memory";
    case Range::Kind::registered:
      return "registered host memory";
    case Range::Kind::mapped:
      return "mapped memory";
    case Range::Kind::imported:
      return "memory opened by IPC";
    default:
      return "memory of cuMemAlloc";
  }
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  if (file >= 0) ::close(file);
}

MemoryTable::MemoryTable(const Settings& settings, AddressMap& addresses) : settings_(settings), addresses_(addresses) {}

MemoryTable::~MemoryTable() {
  for (const auto& [address, range] : ranges_)
    if (range.kind != Range::Kind::registered && range.kind != Range::Kind::mapped)
      munmap(pointer_to(address), rounded(range.bytes, kPage));
  for (const auto& [address, bytes] : reserved_) munmap(pointer_to(address), bytes);
}

void MemoryTable::add(Range range, std::uint64_t accessible, const std::string& name, std::function<bool()> is_gone) {
  addresses_.add({.address = range.address,
                  .bytes = range.bytes,
                  .owner = range.gpu,
                  .accessible = accessible,
                  .name = name,
                  .multicast = range.memory == nullptr ? nullptr : range.memory->multicast,
                  .multicast_offset = range.offset,
                  .is_gone = std::move(is_gone)});
  accessible_[range.address] = accessible;
  range.number = next_number_++;
  ranges_[range.address] = std::move(range);
}

std::uint64_t MemoryTable::allocate(std::uint32_t gpu, std::uint64_t bytes, std::uint64_t peers) {
  if (bytes == 0) throw DriverError(DriverCode::invalid_value, "0 bytes");
  auto memory = create(gpu, rounded(bytes, kPage), false);
  Range range{.bytes = bytes, .kind = Range::Kind::device, .gpu = gpu, .memory = memory};
  range.address = map_memory(0, memory->bytes, PROT_READ | PROT_WRITE, memory->file, 0);
  // The real driver leaves there what was there before.
  std::memset(pointer_to(range.address), kPoison, bytes < kMostPoisoned ? bytes : kMostPoisoned);
  const std::uint64_t address = range.address;
  add(std::move(range), std::uint64_t{1} << gpu | peers, "memory of cuMemAlloc");
  return address;
}

std::uint64_t MemoryTable::allocate_host(std::uint64_t bytes) {
  if (bytes == 0) throw DriverError(DriverCode::invalid_value, "0 bytes");
  const std::uint64_t address = map_memory(0, rounded(bytes, kPage), PROT_READ | PROT_WRITE, -1, 0);
  add({.address = address, .bytes = bytes, .kind = Range::Kind::host}, kAllGpus, "pinned host memory");
  return address;
}

void MemoryTable::register_host(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) throw DriverError(DriverCode::invalid_value, "0 bytes");
  const auto after = ranges_.lower_bound(address);
  const bool overlaps = find(address) != nullptr || (after != ranges_.end() && after->first < address + bytes);
  if (overlaps) throw DriverError(DriverCode::host_memory_already_registered);
  add({.address = address, .bytes = bytes, .kind = Range::Kind::registered}, kAllGpus, "registered host memory");
}

void MemoryTable::release(std::uint64_t address, Range::Kind kind, cuda::DriverCode otherwise) {
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.kind != kind)
    throw DriverError(otherwise, "no " + name_of({.kind = kind}) + " begins at " + hexadecimal(address));
  if (kind == Range::Kind::device) Exporter::mark_freed(*found->second.memory);
  if (kind != Range::Kind::registered) munmap(pointer_to(address), rounded(found->second.bytes, kPage));
  addresses_.remove(address);
  accessible_.erase(address);
  ranges_.erase(found);
}

void MemoryTable::add_peers(std::uint32_t owner, std::uint64_t peers) {
  for (const auto& [address, range] : ranges_) {
    const bool whole = range.kind == Range::Kind::device || range.kind == Range::Kind::imported;
    if (whole && range.gpu == owner) addresses_.set_accessible(address, accessible_[address] |= peers);
  }
}

std::uint64_t MemoryTable::used(std::uint32_t gpu) const {
  std::uint64_t bytes = 0;
  for (const auto& each : created_)
    if (const auto memory = each.lock(); memory != nullptr && memory->gpu == gpu && memory->counted) bytes += memory->bytes;
  return bytes;
}

void MemoryTable::check_space(std::uint32_t gpu, std::uint64_t bytes) const {
  const std::uint64_t in_use = used(gpu);
  if (bytes > settings_.memory || in_use + bytes > settings_.memory)
    throw DriverError(DriverCode::out_of_memory, std::to_string(bytes) + " bytes were asked for, " + std::to_string(in_use) +
                                                     " of " + std::to_string(settings_.memory) + " are in use");
}

std::shared_ptr<PhysicalMemory> MemoryTable::create(std::uint32_t gpu, std::uint64_t bytes, bool exportable) {
  check_space(gpu, bytes);
  auto memory = std::make_shared<PhysicalMemory>();
  memory->file = memfd_create((std::string(kFileName) + ":" + std::to_string(gpu)).c_str(), MFD_CLOEXEC);
  memory->bytes = bytes;
  memory->gpu = gpu;
  memory->exportable = exportable;
  if (memory->file < 0 || ftruncate(memory->file, static_cast<off_t>(bytes)) != 0)
    throw DriverError(DriverCode::operating_system, std::string("memfd_create: ") + std::strerror(errno));
  memory->inode = inode_of(memory->file);
  created_.push_back(memory);
  return memory;
}

// The caller keeps the descriptor that it gave, as with the real driver.
std::shared_ptr<PhysicalMemory> MemoryTable::import_file(int file, std::uint64_t bytes_wanted) {
  if (auto multicast = MulticastObject::open(file, *this); multicast != nullptr)
    return MulticastObject::memory_of(multicast, true);
  std::array<char, 128> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), name.data(), name.size() - 1);
  unsigned gpu = 0;
  if (length < 0 || std::sscanf(name.data(), "/memfd:software_gpu:%u", &gpu) != 1 || gpu >= settings_.gpus)
    throw DriverError(DriverCode::invalid_value, "descriptor " + std::to_string(file) + " is no memory of a GPU of this machine");
  struct stat status {};
  auto memory = std::make_shared<PhysicalMemory>();
  memory->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (memory->file < 0 || fstat(memory->file, &status) != 0)
    throw DriverError(DriverCode::operating_system, std::string("descriptor: ") + std::strerror(errno));
  memory->bytes = static_cast<std::uint64_t>(status.st_size);
  memory->inode = status.st_ino;
  memory->gpu = gpu;
  memory->exportable = true;
  memory->counted = false;
  if (memory->bytes < bytes_wanted) throw DriverError(DriverCode::invalid_value, "the memory is smaller than its handle says");
  return memory;
}

std::uint64_t MemoryTable::map_imported(const std::shared_ptr<PhysicalMemory>& memory, int exporter, std::uint64_t peers) {
  const auto watched = std::make_shared<Exporter>(exporter, memory);
  Range range{.bytes = memory->bytes, .kind = Range::Kind::imported, .gpu = memory->gpu, .memory = memory};
  range.address = map_memory(0, memory->bytes, PROT_READ | PROT_WRITE, memory->file, 0);
  const std::uint64_t address = range.address;
  add(std::move(range), std::uint64_t{1} << memory->gpu | peers, "memory opened by IPC",
      [watched] { return watched->memory_is_gone(); });
  return address;
}

std::uint64_t MemoryTable::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0 || bytes % kGranularity != 0 || (alignment & (alignment - 1)) != 0)
    throw DriverError(DriverCode::invalid_value, "the size must be a multiple of 2 MiB, and the alignment a power of two");
  if (alignment < kGranularity) alignment = kGranularity;
  const std::uint64_t mapped = map_memory(0, bytes + alignment, PROT_NONE, -1, 0);
  const std::uint64_t address = rounded(mapped, alignment);
  if (address > mapped) munmap(pointer_to(mapped), address - mapped);
  if (mapped + alignment > address) munmap(pointer_to(address + bytes), mapped + alignment - address);
  reserved_[address] = bytes;
  return address;
}

void MemoryTable::free_reserved(std::uint64_t address, std::uint64_t bytes) {
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second != bytes) throw DriverError(DriverCode::invalid_value, "this is no reservation");
  if (!mapped_in(address, bytes).empty()) throw DriverError(DriverCode::invalid_value, "memory is still mapped there");
  munmap(pointer_to(address), bytes);
  reserved_.erase(found);
}

void MemoryTable::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                      const std::shared_ptr<PhysicalMemory>& memory) {
  const auto after = reserved_.upper_bound(address);
  const bool reserved = after != reserved_.begin() && address + bytes <= std::prev(after)->first + std::prev(after)->second;
  if (!reserved || bytes == 0 || address % kGranularity != 0 || bytes % kGranularity != 0 || offset + bytes > memory->bytes)
    throw DriverError(DriverCode::invalid_value, "the range is not reserved, not aligned to 2 MiB, or beyond the memory");
  if (!mapped_in(address, bytes).empty()) throw DriverError(DriverCode::invalid_value, "memory is mapped there already");
  if (memory->multicast == nullptr) map_memory(address, bytes, PROT_READ | PROT_WRITE, memory->file, offset);
  add({.address = address, .bytes = bytes, .kind = Range::Kind::mapped, .gpu = memory->gpu, .memory = memory, .offset = offset},
      0, memory->multicast == nullptr ? "mapped memory" : "a multicast object");
}

void MemoryTable::unmap(std::uint64_t address, std::uint64_t bytes) {
  const std::vector<Range*> all = mapped_in(address, bytes);
  std::uint64_t covered = 0;
  for (const Range* range : all) covered += range->bytes;
  if (all.empty() || covered != bytes) throw DriverError(DriverCode::invalid_value, "the range is not mapped as a whole");
  map_memory(address, bytes, PROT_NONE, -1, 0);
  for (const Range* range : all) {
    const std::uint64_t at = range->address;
    addresses_.remove(at);
    accessible_.erase(at);
    ranges_.erase(at);
  }
}

void MemoryTable::set_access(std::uint64_t address, std::uint64_t bytes, std::uint32_t gpu, bool permitted) {
  const std::vector<Range*> all = mapped_in(address, bytes);
  if (all.empty()) throw DriverError(DriverCode::invalid_value, "nothing is mapped there");
  for (const Range* range : all) {
    if (const MulticastObject* const object = range->memory->multicast.get(); object != nullptr) {
      if (!object->has(gpu)) throw DriverError(DriverCode::invalid_device, "the GPU was not added to the multicast object");
    } else if (((settings_.peers[gpu] >> range->gpu) & 1) == 0)
      throw DriverError(DriverCode::peer_access_unsupported,
                        "GPU " + std::to_string(gpu) + " does not reach memory of GPU " + std::to_string(range->gpu));
    std::uint64_t& bits = accessible_[range->address];
    bits = permitted ? bits | std::uint64_t{1} << gpu : bits & ~(std::uint64_t{1} << gpu);
    addresses_.set_accessible(range->address, bits);
  }
}

std::vector<Range*> MemoryTable::mapped_in(std::uint64_t address, std::uint64_t bytes) {
  std::vector<Range*> found;
  for (auto at = ranges_.lower_bound(address); at != ranges_.end() && at->first < address + bytes; ++at)
    if (at->second.kind == Range::Kind::mapped) found.push_back(&at->second);
  return found;
}

std::uint64_t MemoryTable::mapped_at(std::uint64_t inode, std::uint64_t offset) const {
  for (const auto& [address, range] : ranges_)
    if (range.memory != nullptr && range.memory->inode == inode && offset >= range.offset && offset < range.offset + range.bytes)
      return address + (offset - range.offset);
  return 0;
}

std::uint64_t MemoryTable::written() const {
  std::uint64_t bytes = 0;
  for (const auto& [address, range] : ranges_)
    if (const Allocation* const memory = addresses_.find(address); memory != nullptr) bytes += memory->bytes_written;
  return bytes;
}

const Range* MemoryTable::find(std::uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const Range& before = std::prev(after)->second;
  return address < before.address + before.bytes ? &before : nullptr;
}

void MemoryTable::check(std::uint64_t address, std::uint64_t bytes, const char* what) const {
  for (std::uint64_t at = address; at < address + bytes;) {
    const Range* const range = find(at);
    if (range == nullptr)
      throw DriverError(DriverCode::invalid_value, std::string(what) + " " + hexadecimal(address) + " of " +
                                                       std::to_string(bytes) + " bytes is not memory of the driver");
    if (range->memory != nullptr && range->memory->multicast != nullptr)
      throw DriverError(DriverCode::invalid_value, std::string(what) + " is a multicast object, which only kernels access");
    at = range->address + range->bytes;
  }
}

}  // namespace seto::software_gpu::driver

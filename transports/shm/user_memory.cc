#include "transports/shm/user_memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"

namespace seto {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
// Every process of a host maps the file of every other one. 128 TiB of addresses hold those of some hundred processes.
constexpr std::uint64_t kLeast = std::uint64_t{1} << 30;
constexpr std::uint64_t kMost = std::uint64_t{256} << 30;

std::atomic<UserMemory*> current{nullptr};
slots::LendableMemory current_memory;

// Twice the memory of the machine leaves room for parts that lie badly.
std::uint64_t size_for_machine() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) return kLeast;
  return std::clamp(std::bit_ceil(std::uint64_t{machine.totalram} * machine.mem_unit) * 2, kLeast, kMost);
}

}  // namespace

// Without a lock: another thread of the parent may have held it when this child was forked.
UserMemory& UserMemory::of_process() {
  UserMemory* const before = current.load(std::memory_order_acquire);
  if (before != nullptr && before->generation_ == fork_generation()) return *before;
  auto* const made = new UserMemory(size_for_machine());
  made->parents_ = before;
  UserMemory* now = before;
  if (!current.compare_exchange_strong(now, made, std::memory_order_acq_rel)) {
    delete made;
    return *now;
  }
  if (made->segment_) current_memory.set(made->data(), made->segment_->size());
  return *made;
}

const slots::LendableMemory& UserMemory::lendable() { return current_memory; }

UserMemory::UserMemory(std::uint64_t most) {
  Result<Segment> segment = Segment::create({.size = most});
  if (segment.ok() && mprotect(segment.value().data(), most, PROT_NONE) == 0) {
    segment_ = std::move(segment).value();
    free_.emplace(0, most);
    return;
  }
  why_none_ = segment.ok() ? system_failure(Code::unavailable, "cannot protect memory") : segment.status();
  SETO_LOG(info, "memory of setoMemAlloc is not shared with other processes of this host: %s",
           std::string(why_none_.text()).c_str());
}

Result<void*> UserMemory::allocate(std::size_t size) {
  SETO_TRY(why_none_);
  const std::uint64_t alignment = size >= kHugePage ? kHugePage : kSegmentPage;
  if (size > segment_->size()) return failure(Code::unavailable, "%s do not fit", size_text(size).c_str());
  const std::uint64_t whole = (size + alignment - 1) / alignment * alignment;
  const std::optional<std::uint64_t> offset = take(whole, alignment);
  if (!offset) return failure(Code::unavailable, "%s have no room beside the other allocations", size_text(size).c_str());
  if (Status opened = open(*offset, whole); !opened.ok()) {
    (void)close(*offset, whole);
    give_back(*offset, whole);
    return opened;
  }
  return static_cast<void*>(segment_->data() + *offset);
}

std::optional<Status> UserMemory::free(void* memory) {
  const auto offset_in = [memory](const UserMemory& of) {
    return reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(of.data());
  };
  const auto lies_in = [&](const UserMemory* of) {
    return of != nullptr && of->segment_ && memory >= of->data() && offset_in(*of) < of->segment_->size();
  };
  // Memory of the process that forked this one stays as it is: that process may use it.
  if (!lies_in(this)) return lies_in(parents_) ? std::optional(Status()) : std::nullopt;
  const std::uint64_t offset = offset_in(*this);
  std::uint64_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(offset);
    if (found == parts_.end()) return std::nullopt;
    size = found->second;
    parts_.erase(found);
  }
  Status closed = close(offset, size);
  give_back(offset, size);
  return closed;
}

// The first gap that is large enough.
std::optional<std::uint64_t> UserMemory::take(std::uint64_t size, std::uint64_t alignment) {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, length] : free_) {
    const std::uint64_t offset = (begin + alignment - 1) / alignment * alignment;
    const std::uint64_t before = offset - begin;
    if (length < before + size) continue;
    const std::uint64_t after = length - before - size;
    if (after > 0) free_.emplace(offset + size, after);
    const auto gap = free_.find(begin);
    if (before > 0)
      gap->second = before;
    else
      free_.erase(gap);
    parts_.emplace(offset, size);
    return offset;
  }
  return std::nullopt;
}

void UserMemory::give_back(std::uint64_t offset, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  parts_.erase(offset);
  auto gap = free_.emplace(offset, size).first;
  if (const auto next = std::next(gap); next != free_.end() && offset + size == next->first) {
    gap->second += next->second;
    free_.erase(next);
  }
  if (gap == free_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second != offset) return;
  before->second += gap->second;
  free_.erase(gap);
}

Status UserMemory::open(std::uint64_t offset, std::uint64_t size) {
  std::byte* const begin = segment_->data() + offset;
  if (mprotect(begin, size, PROT_READ | PROT_WRITE) != 0) return system_failure(Code::unavailable, "cannot use more memory");
  (void)madvise(begin, size, MADV_DODUMP);  // it is the user's
  return segment_->populate_mapped(offset, size);
}

// A later access is an error of the user's program and ends it, as it does for other memory.
Status UserMemory::close(std::uint64_t offset, std::uint64_t size) {
  std::byte* const begin = segment_->data() + offset;
  if (mprotect(begin, size, PROT_NONE) != 0)
    return system_failure(Code::internal, "cannot protect freed memory at %p", static_cast<void*>(begin));
  (void)madvise(begin, size, MADV_DONTDUMP);
  return segment_->release(offset, size);
}

}  // namespace seto

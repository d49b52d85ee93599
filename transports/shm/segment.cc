#include "transports/shm/segment.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

// Missing in the headers of some systems whose kernels support them.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace seto {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Below this size a query of the free memory costs more than it prevents.
constexpr std::uint64_t kLargePopulate = std::uint64_t{8} << 20;
constexpr std::uint64_t kStatBlock = 512;
// The kernel maps a huge page only where address and offset are multiples of its size.
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

Fd new_memory() {
  Fd fd(memfd_create("seto", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd.valid() && errno == EINVAL) fd = Fd(memfd_create("seto", MFD_CLOEXEC | MFD_ALLOW_SEALING));  // before Linux 6.3
  return fd;
}

std::uint64_t allocated(int fd) {
  struct stat state {};
  if (fstat(fd, &state) != 0) return 0;
  return static_cast<std::uint64_t>(state.st_blocks) * kStatBlock;
}

// Beyond this limit the kernel would raise SIGXFSZ, which by default ends the process.
Status check_file_size_limit(std::uint64_t size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size) return {};
  return failure(Code::unavailable, "shared memory of %s is over this process's limit for files, %s; raise ulimit -f",
                 size_text(size).c_str(), size_text(limit.rlim_cur).c_str());
}

// The free memory of the machine; 0: unknown. Shared memory has no limit of its own, and a machine without memory kills
// processes.
std::uint64_t available_memory() {
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  char line[256];
  unsigned long long kibibytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "MemAvailable: %llu", &kibibytes) != 1) {
  }
  std::fclose(file);
  return kibibytes * 1024;
}

Status out_of_memory(std::uint64_t size, std::uint64_t present, const char* why) {
  return failure(
      Code::unavailable,
      "no %s more of shared memory beside the %s in use: %s; free memory, use fewer communicators, or set smaller buffers",
      size_text(size).c_str(), size_text(present).c_str(), why);
}

// Moves existing pages into huge ones, also where the system's setting for shared memory is never. A hint: a kernel before Linux
// 6.1, or without free huge pages, leaves the small ones.
void collapse(std::byte* begin, std::uint64_t size) {
  const std::uint64_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (size < before + kHugePage) return;
  static_cast<void>(madvise(begin + before, (size - before) / kHugePage * kHugePage, MADV_COLLAPSE));
}

}  // namespace

Result<Segment> Segment::create(const Options& options) {
  SETO_CHECK(options.size > 0 && options.size % kSegmentPage == 0);
  if (options.size > kSegmentLimit) {
    return failure(Code::invalid_argument, "a shared segment of %s is over the limit of %s", size_text(options.size).c_str(),
                   size_text(kSegmentLimit).c_str());
  }
  Segment segment;
  segment.fd_ = new_memory();
  if (!segment.fd_.valid()) return system_failure(Code::unavailable, "cannot make shared memory (memfd_create)");
  const int fd = segment.fd_.get();
  SETO_TRY(check_file_size_limit(options.size));
  if (ftruncate(fd, static_cast<off_t>(options.size)) != 0) {
    return system_failure(Code::unavailable, "cannot size shared memory to %s", size_text(options.size).c_str());
  }
  if (fcntl(fd, F_ADD_SEALS, kSeals) != 0) return system_failure(Code::unavailable, "cannot seal shared memory");
  segment.size_ = options.size;
  segment.limit_bytes_ = options.limit_bytes;
  SETO_TRY(segment.map_whole(fd, Access::read_and_write));
  return segment;
}

Result<Segment> Segment::map(int fd, std::uint64_t largest, Access access) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return failure(Code::remote_error,
                   "the memory of a peer is not sealed against shrinking: it is not a segment of this library");
  }
  struct stat state {};
  if (fstat(fd, &state) != 0) return system_failure(Code::unavailable, "cannot read the size of a peer's memory");
  const auto size = static_cast<std::uint64_t>(state.st_size);
  if (size == 0 || size > largest || size % kSegmentPage != 0) {
    return failure(Code::remote_error, "the memory of a peer has %llu bytes: expected are pages, up to %s",
                   static_cast<unsigned long long>(size), size_text(largest).c_str());
  }
  Segment segment;
  segment.size_ = size;
  SETO_TRY(segment.map_whole(fd, access));
  return segment;
}

Status Segment::map_whole(int fd, Access access) {
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  // Reserves addresses with room for alignment, maps the aligned part of them, and returns the rest.
  const std::uint64_t room = size_ < kHugePage ? 0 : kHugePage - kSegmentPage;
  void* const reserved = mmap(nullptr, size_ + room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* start = MAP_FAILED;
  if (reserved != MAP_FAILED) {
    const auto address = reinterpret_cast<std::uintptr_t>(reserved);
    const std::uint64_t before = room == 0 ? 0 : (kHugePage - address % kHugePage) % kHugePage;
    std::byte* const first = static_cast<std::byte*>(reserved);
    start = mmap(first + before, size_, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
    const int error = errno;
    if (start == MAP_FAILED) munmap(reserved, size_ + room);
    if (start != MAP_FAILED && before > 0) munmap(first, before);
    if (start != MAP_FAILED && room > before) munmap(first + before + size_, room - before);
    errno = error;
  }
  if (start == MAP_FAILED) {
    return system_failure(Code::unavailable, "cannot map %s of shared memory; is ulimit -v set?", size_text(size_).c_str());
  }
  data_ = static_cast<std::byte*>(start);
  // Used where /sys/kernel/mm/transparent_hugepage/shmem_enabled says advise, always or within_size; else without effect.
  static_cast<void>(madvise(data_, size_, MADV_HUGEPAGE));
  // Excludes memory shared by all ranks from core files.
  static_cast<void>(madvise(data_, size_, MADV_DONTDUMP));
  return {};
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      limit_bytes_(other.limit_bytes_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    limit_bytes_ = other.limit_bytes_;
  }
  return *this;
}

Segment::~Segment() { unmap(); }

void Segment::unmap() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
}

Status Segment::check_room(std::uint64_t size) const {
  const std::uint64_t present = allocated(fd_.get());
  if (size > limit_bytes_ || present > limit_bytes_ - size) {
    return out_of_memory(size, present, ("its limit is " + size_text(limit_bytes_)).c_str());
  }
  if (size < kLargePopulate) return {};
  const std::uint64_t available = available_memory();
  if (available != 0 && size > available) {
    return out_of_memory(size, present, ("the machine has " + size_text(available) + " left").c_str());
  }
  return {};
}

Status Segment::populate(std::uint64_t offset, std::uint64_t size) {
  SETO_CHECK(fd_.valid() && offset % kSegmentPage == 0 && size % kSegmentPage == 0);
  SETO_CHECK(offset <= size_ && size <= size_ - offset);
  if (size == 0) return {};
  SETO_TRY(check_room(size));
  int answer = 0;
  do {
    answer = fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (answer != 0 && errno == EINTR);
  if (answer == 0) return {};
  if (errno == ENOSPC || errno == ENOMEM) {
    return out_of_memory(size, allocated(fd_.get()), errno == ENOSPC ? "no space is left" : "the kernel has no memory for it");
  }
  return system_failure(Code::unavailable, "cannot populate %s of shared memory", size_text(size).c_str());
}

Status Segment::populate_mapped(std::uint64_t offset, std::uint64_t size) {
  SETO_CHECK(fd_.valid() && offset <= size_ && size <= size_ - offset);
  SETO_TRY(check_room(size));
  int answer = 0;
  do {
    answer = madvise(data_ + offset, size, MADV_POPULATE_WRITE);
  } while (answer != 0 && (errno == EINTR || errno == EAGAIN));
  if (answer == 0) {
    collapse(data_ + offset, size);
    return {};
  }
  if (errno == EINVAL) return populate(offset, size);  // before Linux 5.14
  return out_of_memory(size, allocated(fd_.get()), "the kernel has no memory for it");
}

Status Segment::release(std::uint64_t offset, std::uint64_t size) {
  SETO_CHECK(fd_.valid() && offset % kSegmentPage == 0 && size % kSegmentPage == 0);
  SETO_CHECK(offset <= size_ && size <= size_ - offset);
  if (size == 0) return {};
  if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) !=
      0) {
    return system_failure(Code::unavailable, "cannot release %s of shared memory", size_text(size).c_str());
  }
  return {};
}

void Segment::prefault(std::uint64_t offset, std::uint64_t size) const {
  SETO_CHECK(offset <= size_ && size <= size_ - offset);
  static_cast<void>(madvise(data_ + offset, size, MADV_POPULATE_WRITE));
}

std::uint64_t Segment::populated() const { return fd_.valid() ? allocated(fd_.get()) : 0; }

}  // namespace seto

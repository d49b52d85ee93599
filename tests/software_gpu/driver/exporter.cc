#include "tests/software_gpu/driver/exporter.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/memory_table.h"

namespace seto::software_gpu::driver {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(1);

}  // namespace

Exporter::Exporter(int process, std::shared_ptr<PhysicalMemory> memory)
    : process_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))), memory_(std::move(memory)) {
  if (process_ < 0) throw DriverError(DriverCode::map_failed, std::string("pidfd_open: ") + std::strerror(errno));
}

Exporter::~Exporter() { ::close(process_); }

bool Exporter::memory_is_gone() {
  const auto now = std::chrono::steady_clock::now();
  if (is_gone_ || now < next_look_) return is_gone_;
  next_look_ = now + kBetweenLooks;
  pollfd ended{process_, POLLIN, 0};
  struct stat status {};
  is_gone_ = poll(&ended, 1, 0) > 0 || fstat(memory_->file, &status) != 0 ||
             static_cast<std::uint64_t>(status.st_size) != memory_->bytes;
  return is_gone_;
}

// The size of the file says it, which has no other use after the first mapping.
void Exporter::mark_freed(const PhysicalMemory& memory) {
  if (ftruncate(memory.file, static_cast<off_t>(memory.bytes + 1)) != 0)
    throw DriverError(DriverCode::operating_system, std::string("ftruncate: ") + std::strerror(errno));
}

}  // namespace seto::software_gpu::driver

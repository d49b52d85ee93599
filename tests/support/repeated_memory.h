#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace seto::testing {

// A buffer of any size that maps the same piece of memory repeatedly, for counts beyond the memory of the machine. The piece is a
// multiple of the page size.
class RepeatedMemory final {
 public:
  RepeatedMemory(std::size_t piece, std::size_t size) : size_((size + piece - 1) / piece * piece) {
    const int file = memfd_create("seto_repeated", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(piece)) != 0) std::abort();
    memory_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory_ == MAP_FAILED) std::abort();
    for (std::size_t at = 0; at < size_; at += piece)
      if (mmap(memory_ + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) std::abort();
    close(file);
  }
  ~RepeatedMemory() { munmap(memory_, size_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return memory_; }

 private:
  std::size_t size_;
  std::byte* memory_ = nullptr;
};

}  // namespace seto::testing

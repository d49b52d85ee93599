#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "transports/gpu_buffer.h"

namespace seto::support {

// Memory in the place of a GPU's. Its addresses are mapped nowhere, as those of a real GPU are not: who reads them crashes. Only
// its dma-buf leads to the bytes, which lie behind other memory in a file (as in tests/software_gpu/driver).
class MemfdGpu final : public GpuBuffer {
 public:
  static constexpr std::size_t kSize = std::size_t{64} << 10;
  static constexpr std::size_t kBegin = std::size_t{12} << 10;

  explicit MemfdGpu(std::size_t size = kSize) : file_(memfd_create("gpu", MFD_CLOEXEC)), size_(size) {
    if (file_.get() < 0 || ftruncate(file_.get(), static_cast<off_t>(kBegin + size_)) != 0) fail("memfd_create");
    // A reserved range, which no other mapping takes meanwhile.
    reserved_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved_ == MAP_FAILED) fail("mmap");
  }
  MemfdGpu(const MemfdGpu&) = delete;
  MemfdGpu& operator=(const MemfdGpu&) = delete;
  ~MemfdGpu() override { munmap(reserved_, size_); }

  // As if peermem gave devices the pages of the addresses.
  void map_addresses() {
    if (mmap(reserved_, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(), kBegin) == MAP_FAILED) fail("mmap");
  }
  // A call does these first, and fails with them.
  std::function<Status()> on_dma_buf = [] { return Status(); };
  std::function<Status()> on_write = on_dma_buf, on_read = on_dma_buf, on_flush = on_dma_buf;

  [[nodiscard]] std::uint64_t address() const override { return reinterpret_cast<std::uint64_t>(reserved_); }
  [[nodiscard]] std::size_t size() const override { return size_; }
  Result<Fd> dma_buf() override {
    SETO_TRY(on_dma_buf());
    const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
    Fd own(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!own.valid() || lseek(own.get(), kBegin, SEEK_SET) != kBegin) fail("lseek");
    return own;
  }
  Status write(std::span<const std::byte> bytes) override {
    SETO_TRY(on_write());
    if (pwrite(file_.get(), bytes.data(), bytes.size(), kBegin) != static_cast<ssize_t>(bytes.size())) fail("pwrite");
    return {};
  }
  Status read(std::span<std::byte> bytes) override { return read_at(0, bytes); }
  Status read_at(std::size_t at, std::span<std::byte> bytes) {
    SETO_TRY(on_read());
    const auto from = static_cast<off_t>(kBegin + at);
    if (pread(file_.get(), bytes.data(), bytes.size(), from) != static_cast<ssize_t>(bytes.size())) fail("pread");
    return {};
  }
  Status flush() override { return on_flush(); }

 private:
  [[noreturn]] static void fail(const char* call) {
    std::perror(call);
    std::abort();
  }

  const Fd file_;
  const std::size_t size_;
  void* reserved_ = nullptr;
};

}  // namespace seto::support

#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tests/support/memfd_gpu.h"
#include "transports/gpu_buffer.h"
#include "transports/named_memory.h"
#include "transports/resume/payload_retention.h"
#include "transports/tcp/link/link_users.h"

namespace seto::support {

// Memory of a GPU that the CPU cannot read, named for devices that read it by dma-buf, and its copy on the host, which comes when
// the test lets it. It counts how often it was asked for.
class GpuMessages final : public HostCopy {
 public:
  GpuMessages(std::size_t size, const std::vector<std::string>& devices) : gpu_(size), host_(size) {
    Result<Fd> exported = gpu_.dma_buf();
    dma_buf_ = std::move(exported).value();
    GpuMemory memory{begin(), size, dma_buf_.get(), {}};
    for (const std::string& device : devices) memory.reach.push_back({device, GpuWay::dma_buf, false, ""});
    name_ = NamedMemory::of_process().add_gpu(memory);
  }
  GpuMessages(const GpuMessages&) = delete;
  GpuMessages& operator=(const GpuMessages&) = delete;
  ~GpuMessages() override { NamedMemory::of_process().remove(name_); }

  [[nodiscard]] std::byte* begin() const { return reinterpret_cast<std::byte*>(gpu_.address()); }
  [[nodiscard]] std::size_t size() const { return gpu_.size(); }
  // As a kernel does.
  void write(std::span<const std::byte> bytes) { (void)gpu_.write(bytes); }

  // The copy ends once it has been asked for so often; with this failure, if it is one.
  void bring_after(std::size_t asked, Status failure = {}) {
    const std::lock_guard lock(mutex_);
    wanted_ = asked;
    failure_ = std::move(failure);
  }
  [[nodiscard]] std::size_t copies() const { return copies_; }
  // The memory is used for another message.
  void forget() { is_there_ = false; }

  Result<const std::byte*> bring(const std::byte* place) override {
    const std::lock_guard lock(mutex_);
    if (!is_there_ && wanted_ > 0) {
      --wanted_;
      return static_cast<const std::byte*>(nullptr);
    }
    if (!is_there_ && !failure_.ok()) return failure_;
    if (!is_there_) {
      (void)gpu_.read_at(0, host_);
      ++copies_;
      is_there_ = true;
    }
    return host_.data() + (place - begin());
  }
  [[nodiscard]] const std::byte* brought(const std::byte* place) const override {
    return is_there_ ? host_.data() + (place - begin()) : nullptr;
  }

 private:
  MemfdGpu gpu_;
  std::vector<std::byte> host_;
  Fd dma_buf_;
  NamedMemory::Name name_ = 0;
  std::mutex mutex_;
  std::size_t wanted_ = 0, copies_ = 0;
  Status failure_;
  bool is_there_ = false;
};

// Such memory as a lender of frames.
struct GpuFrames {
  GpuFrames(std::size_t size, const std::vector<std::string>& devices) : messages(size, devices) {}

  GpuMessages messages;
  tcp::Unwritten unwritten{0};
  resume::Lender lender{messages};
};

}  // namespace seto::support

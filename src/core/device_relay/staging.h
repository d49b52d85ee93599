#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/result.h"
#include "src/device/cuda/driver.h"
#include "src/engine/device/device_transfers.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

inline constexpr std::size_t kStagedMessages = std::size_t{4} << 20;  // where the channels of sends and receives begin
inline constexpr std::size_t kStagingSize = kStagedMessages + TransferArea::kStagedSize;

// Pinned memory of this rank, zeros at first, in which its kernels and its relay hand each other messages. The layout is that of
// DeviceChannels, and after it that of TransferArea. It must outlive the kernels. Its context is current when it is made and when
// it ends.
class Staging final {
 public:
  static Result<std::unique_ptr<Staging>> create(const cuda::Driver& driver);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] std::byte* memory() const { return memory_; }
  [[nodiscard]] kernels::Address address() const { return address_; }  // as this rank's GPU sees it

 private:
  explicit Staging(const cuda::Driver& driver) : driver_(driver) {}

  const cuda::Driver& driver_;
  std::byte* memory_ = nullptr;
  kernels::Address address_ = 0;
};

}  // namespace seto

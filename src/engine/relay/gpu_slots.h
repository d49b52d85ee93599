#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transports/gpu_buffer.h"

namespace seto {

class SlotCopy;

// Slots of relayed messages in memory of the GPU, where its kernels fill them and devices read them, and memory of the host of
// the same layout, into which the driver copies what must go another way. Places are those of staging memory.
class GpuSlots {
 public:
  virtual ~GpuSlots() = default;
  [[nodiscard]] virtual std::byte* memory() const = 0;  // as the GPU and devices know it; the CPU reads nothing there
  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] virtual const std::byte* host() const = 0;
  // Begins to copy what the object names, and calls its end() at some time, on any thread. Does not wait.
  virtual void copy(std::shared_ptr<SlotCopy> wanted) = 0;
};

// The message in one slot, and its way to the host. Used again for each message of the slot. Any thread.
class SlotCopy final : public HostCopy, public std::enable_shared_from_this<SlotCopy> {
 public:
  struct Part {
    std::uint64_t place = 0;
    std::size_t size = 0;
  };
  explicit SlotCopy(GpuSlots& slots) : slots_(slots) {}

  // A new message, none of whose parts is empty. Nothing uses the one before, and is_under_way() is false.
  void begin(std::span<const Part> parts);
  [[nodiscard]] std::span<const Part> parts() const { return parts_; }
  // The slots are being read by the driver: they must not be written.
  [[nodiscard]] bool is_under_way() const { return state() == State::under_way; }
  // Why the bytes will never be on the host.
  [[nodiscard]] Status why() const;
  // By the slots.
  void end(const Status& status);

  Result<const std::byte*> bring(const std::byte* place) override;
  [[nodiscard]] const std::byte* brought(const std::byte* place) const override;

  // A driver that has copied nothing for so long never will. Longer than any copy, shorter than the deadlines of calls.
  static constexpr std::uint64_t kLongestNs = 10'000'000'000;

 private:
  enum class State : std::uint8_t { none, under_way, there, failed };
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_overdue() const;

  GpuSlots& slots_;
  std::vector<Part> parts_;
  std::atomic<State> state_{State::none};
  std::atomic<std::uint64_t> since_ns_{0};
  Status failure_;  // before state_ says so
};

}  // namespace seto

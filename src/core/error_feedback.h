#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

struct Call;

// What codecs left out of a rank's elements of one tensor, call by call. Its owner is the caller; a call that has it adds it to
// what this rank encodes, and leaves what that leaves out. One call at a time has it; the next waits.
class ErrorFeedback final {
 public:
  static Result<std::shared_ptr<ErrorFeedback>> create(DataType type, std::uint64_t count);

  // Whether a call on this rank can use it: its shape, and that there are sums. The text says both shapes.
  [[nodiscard]] Status check(const Call& call, std::uint64_t elements) const;

  [[nodiscard]] bool try_take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }
  // Of who has it: residual_type, one for each element.
  [[nodiscard]] void* residual() { return residual_.get(); }

  // setoInvalidUsage while a call has it.
  Status reset();
  [[nodiscard]] std::size_t saved_size() const;
  // The same bytes on every machine. What is loaded is of the same shape and whole, or nothing changes.
  Status save(std::span<std::byte> into);
  Status load(std::span<const std::byte> from);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  ErrorFeedback(DataType type, std::uint64_t count) : type_(type), count_(count) {}
  [[nodiscard]] std::size_t bytes() const;

  const DataType type_;  // of the tensor
  const std::uint64_t count_;
  std::unique_ptr<std::byte, Free> residual_;
  std::atomic<bool> taken_{false};
};

}  // namespace seto

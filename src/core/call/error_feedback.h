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
class Communicator;

// What codecs left out of a rank's elements of one tensor, call by call. Its owner is the caller; a call that has it adds it to
// what this rank encodes, and leaves what that leaves out. One call at a time has it; the next waits. All are of one
// communicator, whose operations begin in one order on every rank: so no two ranks wait for each other with a state each.
class ErrorFeedback final {
 public:
  static Result<std::shared_ptr<ErrorFeedback>> create(DataType type, std::uint64_t count, const Communicator& communicator);

  [[nodiscard]] Status check_communicator(const Communicator& communicator) const;

  // Whether a call on this rank can use it: its shape, and that there are sums. The text says both shapes.
  [[nodiscard]] Status check(const Call& call, std::uint64_t elements) const;

  // A call that has been issued, until it has ended or is given up. Queued ones, too.
  void expect() { expected_.fetch_add(1, std::memory_order_relaxed); }
  void forget() { expected_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool try_take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }
  // Of who has it: residual_type, one for each element.
  [[nodiscard]] void* residual() { return residual_.get(); }

  // setoInvalidUsage while a call is to use it, or does.
  Status reset();
  [[nodiscard]] std::size_t saved_size() const;
  // The same bytes on every machine. What is loaded is of the same shape and whole, or nothing changes.
  Status save(std::span<std::byte> into);
  Status load(std::span<const std::byte> from);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  ErrorFeedback(DataType type, std::uint64_t count, const Communicator& communicator)
      : type_(type), count_(count), communicator_(&communicator) {}
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] Status check_unused() const;

  const DataType type_;  // of the tensor
  const std::uint64_t count_;
  const Communicator* const communicator_;  // compared, never looked at: it may be gone
  std::unique_ptr<std::byte, Free> residual_;
  std::atomic<std::uint32_t> expected_{0};
  std::atomic<bool> taken_{false};
};

}  // namespace seto

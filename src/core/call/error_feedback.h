#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

struct Call;

// Memory of a state that the processor does not reach. It knows itself which calls use it.
class FeedbackMemory {
 public:
  virtual ~FeedbackMemory() = default;
  [[nodiscard]] virtual bool is_used() = 0;
  // While no call uses it.
  virtual Status clear() = 0;
  virtual Status read(std::span<std::byte> into) = 0;
  virtual Status write(std::span<const std::byte> from) = 0;
};

// The values that codecs discarded from one tensor's elements on this rank, accumulated over calls. The caller owns the state. A
// call that uses it adds the state to what this rank encodes, and stores the new error in it. One call at a time uses it; the
// next one waits. All calls belong to one communicator, whose operations begin in the same order on every rank, so two ranks
// never wait for each other with one state each.
class ErrorFeedback final {
 public:
  // `communicator` is the Communicator::serial of the communicator whose calls use the state.
  static Result<std::shared_ptr<ErrorFeedback>> create(DataType type, std::uint64_t count, std::uint64_t communicator);
  // The same with its residuals in memory that `make` gives for so many bytes, zeros at first.
  using MakeMemory = std::function<Result<std::shared_ptr<FeedbackMemory>>(std::size_t size)>;
  static Result<std::shared_ptr<ErrorFeedback>> create_in(const MakeMemory& make, DataType type, std::uint64_t count,
                                                          std::uint64_t communicator);

  [[nodiscard]] Status check_communicator(std::uint64_t communicator) const;

  // Whether a call of this rank can use the state: same shape, and a sum. The error text states both shapes.
  [[nodiscard]] Status check(const Call& call, std::uint64_t elements) const;

  // Counts calls that were issued (queued ones too) and have neither ended nor been dropped.
  void expect() { expected_.fetch_add(1, std::memory_order_relaxed); }
  void forget() { expected_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool try_take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }
  // For the call that holds the state: one element of residual_type for each element.
  [[nodiscard]] void* residual() { return residual_.get(); }
  // Null unless made by create_in().
  [[nodiscard]] const std::shared_ptr<FeedbackMemory>& memory() const { return memory_; }

  // setoInvalidUsage while a call uses the state or is queued to use it.
  Status reset();
  [[nodiscard]] std::size_t saved_size() const;
  // The format is the same on every machine. load() accepts only a complete state of the same shape; otherwise it changes
  // nothing.
  Status save(std::span<std::byte> into);
  Status load(std::span<const std::byte> from);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  ErrorFeedback(DataType type, std::uint64_t count, std::uint64_t communicator)
      : type_(type), count_(count), communicator_(communicator) {}
  static Status check_shape(DataType type, std::uint64_t count);
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] Status check_unused() const;

  const DataType type_;  // the tensor's type
  const std::uint64_t count_;
  const std::uint64_t communicator_;           // Communicator::serial: an address can be used again, a number is not
  std::unique_ptr<std::byte, Free> residual_;  // null: it is in memory_
  std::shared_ptr<FeedbackMemory> memory_;
  std::atomic<std::uint32_t> expected_{0};
  std::atomic<bool> taken_{false};
};

}  // namespace seto

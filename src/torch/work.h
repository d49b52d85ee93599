#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "include/seto/seto.h"
#include "src/torch/operands.h"

namespace seto::torch_backend {

class Communicator;

// One call, or several as one, from its issue to its end. The library reports the end on one of its threads or on a waiting
// thread. The rest (copies, futures with users' callbacks, the release of memory) is done by the thread that waits, or by the
// completion threads. Calls on tensors of a device are DeviceWorks.
class Work : public c10d::Work {
 public:
  struct What {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = nullptr;  // "seto:all_reduce"
    std::uint64_t sequence = 0;
    std::chrono::milliseconds timeout{};
    int source = -1;  // the sender, for a receive
  };

  Work(std::shared_ptr<Communicator> communicator, int rank, const What& what, std::vector<at::Tensor> results,
       const std::optional<std::vector<at::Tensor>>& inputs);
  ~Work() override;

  [[nodiscard]] Operands& operands() { return operands_; }
  // The device of the tensors.
  [[nodiscard]] virtual c10::Device device() const { return c10::kCPU; }
  [[nodiscard]] Communicator& communicator() const { return *communicator_; }
  // Called by the communicator before any other object knows the work. `position` is that of the stream item that reports the
  // end.
  void issued(setoStream_t stream, std::uint64_t position);
  // Sets the sender of a receive that learns it only later.
  [[nodiscard]] int* source() { return &source_; }
  void set_sequence(std::uint64_t sequence) { what_.sequence = sequence; }  // called before the work is issued
  // Makes the future return the results as this many lists of equal length. Called before the work is issued.
  void results_in_lists(std::size_t lists) { lists_ = lists; }
  // Reports the end of the call. Any thread may call it; it does not block. Returns true if no thread seems to wait, so that the
  // completion threads must complete the work.
  bool ended(setoResult_t result, const char* text);
  // Records that a thread waited for the work while its batch was still open. The calls of that batch are not made.
  [[nodiscard]] bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
  // Runs copies, futures and callbacks once. A second thread waits for the first.
  void settle();

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return what_.sequence; }

 protected:
  // Throws for a wait that comes before the end of the batch of this call. The batch is dropped.
  [[noreturn]] void give_up();
  [[nodiscard]] const std::vector<at::Tensor>& results() const { return results_; }
  [[nodiscard]] c10::intrusive_ptr<c10::ivalue::Future> new_future(std::vector<c10::Device> devices) const;
  [[nodiscard]] c10::IValue value() const;
  [[nodiscard]] std::string timeout_text(std::chrono::milliseconds timeout) const;

 private:
  [[nodiscard]] bool has_ended() const;

  const std::shared_ptr<Communicator> communicator_;
  What what_;
  std::vector<at::Tensor> results_;
  std::size_t lists_ = 1;
  Operands operands_;
  std::atomic<bool> given_up_{false};
  int source_;                     // written while the call is under way
  setoStream_t stream_ = nullptr;  // null while its batch is open
  std::uint64_t position_ = 0;
  // Guarded by mutex_ of the base class, like its completed_ and exception_.
  bool ended_ = false;
  bool settling_ = false;
  setoResult_t outcome_ = setoSuccess;
  std::string text_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace seto::torch_backend

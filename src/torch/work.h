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

class Channel;

// One call, or several as one, from the issue to the end. The library tells of the end on any thread of its own or of a waiter;
// the rest (copies, futures with the callbacks of users, the release of memory) is done by who waits, or by the finisher.
class Work final : public c10d::Work {
 public:
  struct What {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = nullptr;  // "seto:all_reduce"
    std::uint64_t sequence = 0;
    std::chrono::milliseconds timeout{};
    int source = -1;  // of a receive
  };

  Work(std::shared_ptr<Channel> channel, int rank, const What& what, std::vector<at::Tensor> results,
       const std::optional<std::vector<at::Tensor>>& inputs);
  ~Work() override;

  [[nodiscard]] Operands& operands() { return operands_; }
  [[nodiscard]] Channel& channel() const { return *channel_; }
  // By the channel, before anybody else knows it. Position: that of the word about its end.
  void issued(setoStream_t stream, std::uint64_t position);
  // From whom it receives; for who finds out later than it began.
  [[nodiscard]] int* source() { return &source_; }
  void set_sequence(std::uint64_t sequence) { what_.sequence = sequence; }  // before it is issued
  // So does the future give them: as many lists of equal length. Before it is issued.
  void results_in_lists(std::size_t lists) { lists_ = lists; }
  // The end of the call. Any thread; does not block. True: nobody waits for it as far as one can see, so somebody has to settle
  // it.
  bool ended(setoResult_t result, const char* text);
  // Somebody has waited for it while its batch was open: no call of that will be made.
  [[nodiscard]] bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
  // Copies, futures, callbacks: once; whoever comes second waits for the first.
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

 private:
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] c10::IValue value() const;

  const std::shared_ptr<Channel> channel_;
  What what_;
  std::vector<at::Tensor> results_;
  std::size_t lists_ = 1;
  Operands operands_;
  std::atomic<bool> given_up_{false};
  int source_;                     // written while the call is under way
  setoStream_t stream_ = nullptr;  // null: part of a batch that is still open
  std::uint64_t position_ = 0;
  // Under mutex_ of the base, as its completed_ and exception_.
  bool ended_ = false;
  bool settling_ = false;
  setoResult_t outcome_ = setoSuccess;
  std::string text_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace seto::torch_backend

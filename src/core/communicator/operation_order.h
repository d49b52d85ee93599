#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "src/core/communicator/members.h"
#include "src/core/progress/task.h"

namespace seto {

// Numbers the operations of one rank and decides when each may begin: in the order of their numbers, at most kWindow
// at once. An operation takes its number when it is issued, whether its call is right or wrong. Each counter is written by one
// thread at a time. Any thread may read them.
class OperationOrder final {
 public:
  explicit OperationOrder(const Members& members) : members_(members) {}
  OperationOrder(const OperationOrder&) = delete;
  OperationOrder& operator=(const OperationOrder&) = delete;

  // On the calling thread: the number of the next operation. issue() counts it, once its task exists and nothing can throw any
  // more: a number without a task would block all later operations.
  [[nodiscard]] std::uint64_t next() const { return issued() + 1; }
  void issue() { issued_.store(next(), std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t issued() const { return issued_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  // All operations up to this number have ended on this rank.
  [[nodiscard]] std::uint64_t done() const { return done_.load(std::memory_order_acquire); }

  // The rest is for the holder of the progress token.
  [[nodiscard]] bool may_begin(std::uint64_t operation) const {
    return operation == begun() + 1 && operation <= done_.load(std::memory_order_relaxed) + kWindow;
  }
  void begin(const Note& note) {
    begun_.store(note.operation, std::memory_order_relaxed);
    members_.peer_group().status().begin(note);
  }
  // This rank rejects its own call: the note tells the other ranks why.
  void begin_rejected(Note note, const Status& reason);
  void complete(std::uint64_t operation);

  // The note of that operation can be written now, and the other ranks will still find the notes before it. Ranks that have left
  // or died do not count.
  [[nodiscard]] bool peers_keep_up_with(std::uint64_t operation) const {
    return operation <= kWindow || members_.all_have_completed(operation - kWindow);
  }
  // The note of that operation does not overwrite the note of a rejected call that some rank has not read yet.
  [[nodiscard]] bool rejection_was_read(std::uint64_t operation);

  // The tasks of the operations begin in the order of the numbers.
  [[nodiscard]] TaskSequence& tasks() { return tasks_; }

 private:
  const Members& members_;
  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t rejected_ = 0;  // the last operation that this rank rejected and that others may not know; 0: none
  TaskSequence tasks_;
  std::array<std::uint64_t, kWindow> ended_early_{};  // operations beyond done_
};

}  // namespace seto

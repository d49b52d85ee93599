#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/types.h"

namespace seto {

// The kind of a recorded call. A collective has an operation number; every other call is one send, one receive, several messages
// that were issued together, or a receive from any rank.
enum class RecordedKind : std::uint8_t { collective, send, receive, transfers, all_to_all_v, receive_any };
enum class RecordedState : std::uint8_t { issued = 1, begun, ended, rejected, failed };
std::string_view name_of(RecordedState state);

// The fields are packed, so that a repeated shape is recorded by copying this struct.
struct RecordedCall {
  std::uint64_t count = 0;  // for transfers: their number
  std::uint64_t size_and_algorithm = 0;
  std::uint64_t kinds_and_digest = 0;
  std::uint64_t root = 0;

  struct Parts {
    RecordedKind kind = RecordedKind::collective;
    Collective collective = Collective::all_reduce;
    DataType type = DataType::float32;
    ReduceOp op = ReduceOp::sum;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    Rank root = 0;           // for a send or receive: the peer
    int algorithm = 0;       // id; 0: no algorithm was chosen
    std::uint8_t codec = 0;  // the codec's number in plans; 0: no codec
    std::uint32_t digest = 0;
  };
  static RecordedCall of(const Parts& parts);
};

// The caller's own description of a call, for dumps. The label is not copied: it must live as long as the process.
struct CallerMark {
  const char* label = nullptr;
  std::uint64_t tag = 0;

  [[nodiscard]] bool empty() const { return label == nullptr && tag == 0; }
};

// The result of binding a call.
struct BoundAs {
  std::uint64_t bytes = 0;
  int algorithm = 0;
  std::uint8_t codec = 0;
  std::uint32_t digest = 0;
};

struct RecordedOperation {      // a snapshot of one recorded call
  std::uint64_t sequence = 0;   // position among the calls of this communicator, from 1
  std::uint64_t operation = 0;  // 0: the call has no operation number
  RecordedCall::Parts call;
  CallerMark mark;
  RecordedState state = RecordedState::issued;
  // Times are ticks(); 0: not yet. If the clock was not read when the call began or ended, the time of the state before is used.
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};

// A ring of the last calls of one communicator: fixed size, no locks. One thread at a time writes a call: the caller, then the
// thread that drives it. Any thread may read; a reader skips entries that are overwritten while it reads them. Capacity 0 records
// nothing.
class FlightRecorder final {
 public:
  using Ticket = std::uint64_t;  // 0: not recorded

  FlightRecorder() = default;
  explicit FlightRecorder(std::uint64_t capacity);
  FlightRecorder& operator=(FlightRecorder&& other) noexcept;

  // Not stamped: stamp() follows within about a microsecond. A call that is read before that counts as issued at that moment.
  Ticket issue(const RecordedCall& call, std::uint64_t operation, const CallerMark& mark, bool stamped = true) {
    if (entries_ == nullptr) return 0;
    const Ticket ticket = last_.load(std::memory_order_relaxed) + 1;
    Entry& entry = entries_[ticket & mask_];
    // The order matters: a reader that has seen a new word also sees that the mark has changed.
    entry.mark.store(ticket << kStateBits, std::memory_order_relaxed);
    entry.operation_and_root.store(operation << kRootBits | call.root, std::memory_order_release);
    entry.count.store(call.count, std::memory_order_release);
    entry.size_and_algorithm.store(call.size_and_algorithm, std::memory_order_release);
    entry.kinds_and_digest.store(call.kinds_and_digest, std::memory_order_release);
    entry.issued.store(stamped ? seto::ticks() : 0, std::memory_order_release);
    entry.begun.store(0, std::memory_order_release);
    entry.ended.store(0, std::memory_order_release);
    if (marked_ || !mark.empty()) put_mark(ticket, mark);
    entry.mark.store(ticket << kStateBits | static_cast<std::uint64_t>(RecordedState::issued), std::memory_order_release);
    last_.store(ticket, std::memory_order_release);
    return ticket;
  }
  void stamp(Ticket ticket);
  // Ticks of 0: the same time as the state before.
  void begin(Ticket ticket, std::uint64_t ticks) { change(ticket, RecordedState::begun, &Entry::begun, ticks); }
  void end(Ticket ticket, RecordedState how, std::uint64_t ticks) { change(ticket, how, &Entry::ended, ticks); }

  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint64_t recorded() const { return last_.load(std::memory_order_acquire); }
  // At most so many, the last ones, oldest call first.
  [[nodiscard]] std::vector<RecordedOperation> read(std::uint64_t most = ~std::uint64_t{0}) const;

 private:
  static constexpr int kStateBits = 3;
  static constexpr int kRootBits = 16;

  struct alignas(64) Entry {             // one cache line
    std::atomic<std::uint64_t> mark{0};  // ticket and state; state 0: the entry is being written
    std::atomic<std::uint64_t> operation_and_root{0};
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> size_and_algorithm{0};
    std::atomic<std::uint64_t> kinds_and_digest{0};
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> ended{0};
  };

  struct Mark {
    std::atomic<const char*> label{nullptr};
    std::atomic<std::uint64_t> tag{0};
  };

  void put_mark(Ticket ticket, const CallerMark& mark);

  // If more calls are under way than the ring holds, the oldest ones have been overwritten and are left alone.
  void change(Ticket ticket, RecordedState state, std::atomic<std::uint64_t> Entry::*when, std::uint64_t ticks) {
    if (ticket == 0) return;
    Entry& entry = entries_[ticket & mask_];
    if (entry.mark.load(std::memory_order_relaxed) >> kStateBits != ticket) return;
    if (ticks != 0) (entry.*when).store(ticks, std::memory_order_relaxed);
    entry.mark.store(ticket << kStateBits | static_cast<std::uint64_t>(state), std::memory_order_release);
  }
  [[nodiscard]] bool read(Ticket ticket, RecordedOperation& operation) const;

  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Mark[]> marks_;  // parallel to entries_, whose cache line is full
  bool marked_ = false;            // true once a call had a mark; before that marks_ is never touched
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::atomic<Ticket> last_{0};
};

}  // namespace seto

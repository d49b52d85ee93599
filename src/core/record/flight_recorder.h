#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/types.h"

namespace seto {

struct Call;

// What the flight recorder keeps of a call. Counted ones are collectives; of the rest a call is one send, one receive, or several
// that were issued together, or a receive from anybody.
enum class RecordedKind : std::uint8_t { collective, send, receive, transfers, all_to_all_v, receive_any };
enum class RecordedState : std::uint8_t { issued = 1, begun, ended, rejected, failed };
std::string_view name_of(RecordedState state);

// Packed, so that a shape that comes back is recorded by copying it.
struct RecordedCall {
  std::uint64_t count = 0;  // of transfers: how many
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
    Rank root = 0;           // of a send or receive: the peer
    int algorithm = 0;       // id; 0: none was chosen
    std::uint8_t codec = 0;  // that it travels in, as plans number it; 0: exactly
    std::uint32_t digest = 0;
  };
  static RecordedCall of(const Parts& parts);
};

// What a caller says of a call, for people. The label is not copied, and stays as long as the process.
struct CallerMark {
  const char* label = nullptr;
  std::uint64_t tag = 0;

  [[nodiscard]] bool empty() const { return label == nullptr && tag == 0; }
};

// What a call became when it was bound.
struct BoundAs {
  std::uint64_t bytes = 0;
  int algorithm = 0;
  std::uint8_t codec = 0;
  std::uint32_t digest = 0;
};
RecordedCall recorded(const Call& call, const BoundAs& bound);

// One remembered call, as it was read.
struct RecordedOperation {
  std::uint64_t sequence = 0;   // among the calls of this communicator, from 1
  std::uint64_t operation = 0;  // 0: it has no number
  RecordedCall::Parts call;
  CallerMark mark;
  RecordedState state = RecordedState::issued;
  // Of ticks(). 0: not yet. What began or ended so soon that nobody read the clock for it has the time of the moment before.
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};

// The last calls of one communicator: fixed size, no locks. Each call is written by one thread at a time: the caller, then
// whoever drives it. Any thread reads; what is overwritten meanwhile is left out. A capacity of 0 records nothing.
class Recorder final {
 public:
  using Ticket = std::uint64_t;  // 0: not recorded

  Recorder() = default;
  explicit Recorder(std::uint64_t capacity);
  Recorder& operator=(Recorder&& other) noexcept;

  Ticket issue(const RecordedCall& call, std::uint64_t operation, const CallerMark& mark) {
    if (entries_ == nullptr) return 0;
    const Ticket ticket = last_.load(std::memory_order_relaxed) + 1;
    Entry& entry = entries_[ticket & mask_];
    // In this order: a reader that has seen a new word sees that the old call is gone.
    entry.mark.store(ticket << kStateBits, std::memory_order_relaxed);
    entry.operation_and_root.store(operation << kRootBits | call.root, std::memory_order_release);
    entry.count.store(call.count, std::memory_order_release);
    entry.size_and_algorithm.store(call.size_and_algorithm, std::memory_order_release);
    entry.kinds_and_digest.store(call.kinds_and_digest, std::memory_order_release);
    entry.issued.store(seto::ticks(), std::memory_order_release);
    entry.begun.store(0, std::memory_order_release);
    entry.ended.store(0, std::memory_order_release);
    if (marked_ || !mark.empty()) put_mark(ticket, mark);
    entry.mark.store(ticket << kStateBits | static_cast<std::uint64_t>(RecordedState::issued), std::memory_order_release);
    last_.store(ticket, std::memory_order_release);
    return ticket;
  }
  // Ticks of 0: at once.
  void begin(Ticket ticket, std::uint64_t ticks) { change(ticket, RecordedState::begun, &Entry::begun, ticks); }
  void end(Ticket ticket, RecordedState how, std::uint64_t ticks) { change(ticket, how, &Entry::ended, ticks); }

  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint64_t recorded() const { return last_.load(std::memory_order_acquire); }
  // Oldest first.
  [[nodiscard]] std::vector<RecordedOperation> read() const;

 private:
  static constexpr int kStateBits = 3;
  static constexpr int kRootBits = 16;

  // A cache line.
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> mark{0};  // ticket, state; a state of 0: being written
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

  // Where more calls are under way than are kept, the older ones have lost their place.
  void change(Ticket ticket, RecordedState state, std::atomic<std::uint64_t> Entry::*when, std::uint64_t ticks) {
    if (ticket == 0) return;
    Entry& entry = entries_[ticket & mask_];
    if (entry.mark.load(std::memory_order_relaxed) >> kStateBits != ticket) return;
    if (ticks != 0) (entry.*when).store(ticks, std::memory_order_relaxed);
    entry.mark.store(ticket << kStateBits | static_cast<std::uint64_t>(state), std::memory_order_release);
  }
  [[nodiscard]] bool read(Ticket ticket, RecordedOperation& operation) const;

  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Mark[]> marks_;  // like the entries, which have no room
  bool marked_ = false;            // one was given: until then nobody touches them
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::atomic<Ticket> last_{0};
};

}  // namespace seto

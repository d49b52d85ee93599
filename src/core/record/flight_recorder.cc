#include "src/core/record/flight_recorder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/codec/codec.h"

namespace seto {
namespace {

constexpr int kAlgorithmShift = 48;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << kAlgorithmShift) - 1;
constexpr int kCodecShift = 4;  // the codec's number stands above the kind in one byte
constexpr std::uint64_t kKindMask = (std::uint64_t{1} << kCodecShift) - 1;
static_assert(kCodecCount < 1 << (8 - kCodecShift) && static_cast<int>(RecordedKind::receive_any) < 1 << kCodecShift);

}  // namespace

std::string_view name_of(RecordedState state) {
  static constexpr std::string_view kNames[] = {"unknown", "issued", "begun", "ended", "rejected", "failed"};
  const auto index = static_cast<std::size_t>(state);
  return kNames[index < std::size(kNames) ? index : 0];
}

RecordedCall RecordedCall::of(const Parts& parts) {
  RecordedCall call;
  call.count = parts.count;
  call.size_and_algorithm = std::min(parts.bytes, kMostBytes) |
                            static_cast<std::uint64_t>(static_cast<std::uint16_t>(parts.algorithm)) << kAlgorithmShift;
  call.kinds_and_digest = static_cast<std::uint64_t>(parts.kind) | std::uint64_t{parts.codec} << kCodecShift |
                          static_cast<std::uint64_t>(parts.collective) << 8 | static_cast<std::uint64_t>(parts.type) << 16 |
                          static_cast<std::uint64_t>(parts.op) << 24 | std::uint64_t{parts.digest} << 32;
  call.root = static_cast<std::uint16_t>(parts.root);
  return call;
}

FlightRecorder::FlightRecorder(std::uint64_t capacity)
    : entries_(capacity == 0 ? nullptr : std::make_unique<Entry[]>(std::bit_ceil(capacity))),
      marks_(capacity == 0 ? nullptr : std::make_unique<Mark[]>(std::bit_ceil(capacity))),
      capacity_(capacity),
      mask_(capacity == 0 ? 0 : std::bit_ceil(capacity) - 1) {}

FlightRecorder& FlightRecorder::operator=(FlightRecorder&& other) noexcept {
  entries_ = std::move(other.entries_);
  marks_ = std::move(other.marks_);
  marked_ = std::exchange(other.marked_, false);
  capacity_ = std::exchange(other.capacity_, 0);
  mask_ = std::exchange(other.mask_, 0);
  last_.store(other.last_.exchange(0), std::memory_order_release);
  return *this;
}

void FlightRecorder::put_mark(Ticket ticket, const CallerMark& mark) {
  marked_ = true;
  marks_[ticket & mask_].label.store(mark.label, std::memory_order_release);
  marks_[ticket & mask_].tag.store(mark.tag, std::memory_order_release);
}

void FlightRecorder::stamp(Ticket ticket) {
  if (ticket == 0) return;
  Entry& entry = entries_[ticket & mask_];
  if (entry.mark.load(std::memory_order_relaxed) >> kStateBits == ticket) entry.issued.store(ticks(), std::memory_order_release);
}

// A writer changes the mark before it writes any other word. A reader that has read a word of a later call therefore reads a
// different mark at the end.
bool FlightRecorder::read(Ticket ticket, RecordedOperation& operation) const {
  const Entry& entry = entries_[ticket & mask_];
  const std::uint64_t before = entry.mark.load(std::memory_order_acquire);
  const std::uint64_t state = before & ((1U << kStateBits) - 1);
  if (before >> kStateBits != ticket || state == 0) return false;
  const std::uint64_t operation_and_root = entry.operation_and_root.load(std::memory_order_acquire);
  const std::uint64_t size = entry.size_and_algorithm.load(std::memory_order_acquire);
  const std::uint64_t kinds = entry.kinds_and_digest.load(std::memory_order_acquire);
  operation.sequence = ticket;
  operation.operation = operation_and_root >> kRootBits;
  operation.call.root = static_cast<Rank>(operation_and_root & ((1U << kRootBits) - 1));
  operation.call.count = entry.count.load(std::memory_order_acquire);
  operation.call.bytes = size & kMostBytes;
  operation.call.algorithm = static_cast<int>(size >> kAlgorithmShift);
  operation.call.kind = static_cast<RecordedKind>(kinds & kKindMask);
  operation.call.codec = static_cast<std::uint8_t>((kinds & 0xff) >> kCodecShift);
  operation.call.collective = static_cast<Collective>(kinds >> 8 & 0xff);
  operation.call.type = static_cast<DataType>(kinds >> 16 & 0xff);
  operation.call.op = static_cast<ReduceOp>(kinds >> 24 & 0xff);
  operation.call.digest = static_cast<std::uint32_t>(kinds >> 32);
  operation.mark.label = marks_[ticket & mask_].label.load(std::memory_order_acquire);
  operation.mark.tag = marks_[ticket & mask_].tag.load(std::memory_order_acquire);
  operation.state = static_cast<RecordedState>(state);
  operation.issued = entry.issued.load(std::memory_order_acquire);
  operation.begun = entry.begun.load(std::memory_order_acquire);
  operation.ended = entry.ended.load(std::memory_order_acquire);
  if (entry.mark.load(std::memory_order_relaxed) >> kStateBits != ticket) return false;
  if (operation.issued == 0) operation.issued = ticks();  // its time stamp follows in a moment
  if (operation.begun == 0 && operation.state != RecordedState::issued) operation.begun = operation.issued;
  if (operation.ended == 0 && operation.state >= RecordedState::ended) operation.ended = operation.begun;
  return true;
}

std::vector<RecordedOperation> FlightRecorder::read(std::uint64_t most) const {
  std::vector<RecordedOperation> all;
  const Ticket last = recorded();
  const Ticket kept = std::min({last, capacity_, most});
  all.reserve(kept);
  for (Ticket ticket = last - kept + 1; ticket <= last; ++ticket)
    if (RecordedOperation operation; read(ticket, operation)) all.push_back(operation);
  return all;
}

}  // namespace seto

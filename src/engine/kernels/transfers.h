#pragma once

#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/threads.h"
#include "src/engine/kernels/transfer_program.h"

namespace seto::kernels {

// Moves bytes with all threads of a block, in words as wide as the two addresses allow.
template <class Word>
SETO_KERNEL void move_words(const std::byte* from, std::byte* to, std::uint64_t size) {
  constexpr std::uint64_t kAtOnce = 4;
  const std::uint32_t thread = thread_index();
  const std::uint32_t threads = thread_count();
  const std::uint64_t before = (0 - static_cast<std::uint64_t>(address_of(to))) % sizeof(Word);
  const std::uint64_t head = before < size ? before : size;
  const std::uint64_t words = (size - head) / sizeof(Word);
  for (std::uint64_t i = thread; i < head; i += threads) store(to + i, load<std::uint8_t>(from + i));
  const std::byte* const source = from + head;
  std::byte* const target = to + head;
  std::uint64_t i = thread;
  for (; i + (kAtOnce - 1) * threads < words; i += kAtOnce * threads) {
    Word moved[kAtOnce];
    SETO_UNROLL for (std::uint64_t k = 0; k < kAtOnce; ++k) moved[k] = load<Word>(source + (i + k * threads) * sizeof(Word));
    SETO_UNROLL for (std::uint64_t k = 0; k < kAtOnce; ++k) store(target + (i + k * threads) * sizeof(Word), moved[k]);
  }
  for (; i < words; i += threads) store(target + i * sizeof(Word), load<Word>(source + i * sizeof(Word)));
  for (std::uint64_t k = head + words * sizeof(Word) + thread; k < size; k += threads)
    store(to + k, load<std::uint8_t>(from + k));
}

SETO_KERNEL void move_bytes(const std::byte* from, std::byte* to, std::uint64_t size) {
  const std::uintptr_t differences = address_of(from) ^ address_of(to);
  if (differences % sizeof(Words) == 0)
    move_words<Words>(from, to, size);
  else if (differences % sizeof(std::uint32_t) == 0)
    move_words<std::uint32_t>(from, to, size);
  else
    move_words<std::uint8_t>(from, to, size);
}

// Executes the transfers of one launch as one block. It has some of the lanes, and goes on with whichever can move a slice, so
// neither the order of messages with several peers nor the number of blocks can make ranks wait for each other in a circle. All
// threads run it alike.
class TransferBlock final {
 public:
  SETO_KERNEL TransferBlock(const TransferArguments& arguments, std::uint32_t block)
      : arguments_(arguments), program_(*at<const TransferProgram>(arguments.program)), block_(block) {}

  SETO_KERNEL void run() const {
    copy_own();
    for (;;) {
      bool left = false, moved = false;
      for (std::uint32_t lane = block_; lane < program_.lane_count; lane += program_.blocks) {
        const Turn turn = take_turn(lane_at(lane));
        if (turn == Turn::refused) return;
        left = left || turn != Turn::done;
        moved = moved || turn == Turn::moved;
      }
      if (!left) return finish();
      if (moved) continue;
      if (barrier_any(thread_index() == 0 && load_relaxed(at<std::uint32_t>(arguments_.stop)) != 0)) return report_stop();
      wait_a_little();
    }
  }

 private:
  enum class Turn : std::uint32_t { done, waiting, moved, refused };

  // The next slice of a lane.
  struct Place {
    std::uint32_t message;  // of the lane; its message_count: there is none
    std::uint32_t moved;    // slices of that message by this channel
    std::uint64_t slice;
  };

  SETO_KERNEL const TransferLane& lane_at(std::uint32_t lane) const { return program_.table<TransferLane>(program_.lanes)[lane]; }
  SETO_KERNEL TransferMessage message_at(const TransferLane& lane, std::uint32_t message) const {
    TransferMessage found = program_.table<TransferMessage>(program_.messages)[lane.first_message + message];
    if (found.numbered != 0) found.label += arguments_.exchange << kLabelNumberBits;
    return found;
  }
  SETO_KERNEL std::uint64_t slices_of(std::uint64_t size) const {
    return size == 0 ? 1 : (size + program_.slot_content - 1) / program_.slot_content;
  }

  SETO_KERNEL Place place_of(const TransferLane& lane, const TransferState& state) const {
    Place place{state.message, state.slices, 0};
    for (; place.message < lane.message_count; ++place.message, place.moved = 0) {
      place.slice = lane.channel + std::uint64_t{place.moved} * program_.channels;
      const std::uint64_t size = program_.table<TransferMessage>(program_.messages)[lane.first_message + place.message].size;
      if (place.slice < slices_of(size)) break;
    }
    return place;
  }

  // A thread writes the state only between two barriers, so all threads have read the same.
  SETO_KERNEL Turn take_turn(const TransferLane& lane) const {
    TransferState& state = *at<TransferState>(lane.state);
    const std::uint64_t count = state.count;
    const Place place = place_of(lane, state);
    if (place.message == lane.message_count) return Turn::done;
    if (!barrier_any(thread_index() == 0 && is_ready(lane, count))) return Turn::waiting;
    const TransferMessage message = message_at(lane, place.message);
    std::byte* const slot =
        at<std::byte>(lane.slots) + count % program_.depth * (std::uint64_t{program_.slot_content} + kSliceHeaderSize);
    auto* const header = reinterpret_cast<SliceHeader*>(slot);
    if (lane.sends == 0 && (header->size != message.size || header->label != message.label)) {
      if (thread_index() == 0) refuse(lane, place, *header);
      return Turn::refused;
    }
    if (thread_index() == 0) {
      state.count = count + 1;
      state.message = place.message;
      state.slices = place.moved + 1;
      if (lane.sends != 0) *header = {message.size, message.label};
    }
    move_slice(lane, message, place.slice, slot + kSliceHeaderSize);
    barrier();
    if (thread_index() == 0) store_release(at<std::uint64_t>(lane.sends != 0 ? lane.posted : lane.read), count + 1);
    return Turn::moved;
  }

  SETO_KERNEL bool is_ready(const TransferLane& lane, std::uint64_t count) const {
    if (lane.sends == 0) return load_acquire(at<std::uint64_t>(lane.posted)) > count;
    return load_acquire(at<std::uint64_t>(lane.read)) + program_.depth > count;
  }

  SETO_KERNEL void move_slice(const TransferLane& lane, const TransferMessage& message, std::uint64_t slice,
                              std::byte* content) const {
    const std::uint64_t begin = slice * program_.slot_content;
    const std::uint64_t left = message.size - begin;
    std::byte* const memory = at<std::byte>(message.memory) + begin;
    move_bytes(lane.sends != 0 ? memory : content, lane.sends != 0 ? content : memory,
               left < program_.slot_content ? left : program_.slot_content);
  }

  // Each block copies its part of every message of this rank to itself.
  SETO_KERNEL void copy_own() const {
    for (std::uint32_t k = 0; k < program_.copy_count; ++k) {
      const TransferCopy& copy = program_.table<TransferCopy>(program_.copies)[k];
      const std::uint64_t lines = (copy.size + kSliceHeaderSize - 1) / kSliceHeaderSize;
      const std::uint64_t part = (lines + program_.blocks - 1) / program_.blocks * kSliceHeaderSize;
      const std::uint64_t begin = block_ * part;
      if (begin >= copy.size) continue;
      move_bytes(at<const std::byte>(copy.source + begin), at<std::byte>(copy.target + begin),
                 copy.size - begin < part ? copy.size - begin : part);
    }
  }

  // ---- the end

  SETO_KERNEL TransferReport& report_of(const TransferLane& lane) const {
    return at<TransferReport>(arguments_.reports)[lane.report];
  }
  SETO_KERNEL void tell(const TransferLane& lane, TransferOutcome outcome) const {
    store_release(&report_of(lane).state, arguments_.launch << kReportBits | static_cast<std::uint32_t>(outcome));
  }

  SETO_KERNEL void finish() const {
    barrier();
    for (std::uint32_t k = block_ + thread_index() * program_.blocks; k < program_.lane_count;
         k += thread_count() * program_.blocks) {
      const TransferLane& lane = lane_at(k);
      auto& state = *at<TransferState>(lane.state);
      state.message = 0;
      state.slices = 0;
      tell(lane, TransferOutcome::done);
    }
  }

  SETO_KERNEL void refuse(const TransferLane& lane, const Place& place, const SliceHeader& theirs) const {
    TransferReport& report = report_of(lane);
    const TransferMessage own = message_at(lane, place.message);
    store_relaxed(&report.message, place.message);
    store_relaxed(&report.own_size, own.size);
    store_relaxed(&report.own_label, own.label);
    store_relaxed(&report.their_size, theirs.size);
    store_relaxed(&report.their_label, theirs.label);
    tell(lane, TransferOutcome::refused);
    store_release(at<std::uint64_t>(arguments_.stop), kStop | kStopRefused);
  }

  SETO_KERNEL void report_stop() const {
    for (std::uint32_t k = block_ + thread_index() * program_.blocks; k < program_.lane_count;
         k += thread_count() * program_.blocks) {
      const TransferLane& lane = lane_at(k);
      const Place place = place_of(lane, *at<TransferState>(lane.state));
      store_relaxed(&report_of(lane).message, place.message);
      tell(lane, place.message == lane.message_count ? TransferOutcome::done : TransferOutcome::stopped);
    }
  }

  const TransferArguments& arguments_;
  const TransferProgram& program_;
  const std::uint32_t block_;
};

}  // namespace seto::kernels

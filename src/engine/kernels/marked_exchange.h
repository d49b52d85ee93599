#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/types.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/device_program.h"
#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/interpreter.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/operations.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/plain_pass.h"
#include "src/engine/kernels/threads.h"

namespace seto::kernels {

// One exchange of marked messages (decision 50), executed by the only block of its program: every rank sends one message to every
// other, and each word of it carries the mark of the exchange. A thread stores and polls the words of its own elements, so there
// is neither a flag nor a fence nor a barrier. Nothing but the data of a word follows from having seen its mark.
template <class Number>
class MarkedExchange final {
 public:
  // `exchange` counts from 1, on all ranks alike.
  SETO_KERNEL MarkedExchange(const DeviceArguments& arguments, std::uint64_t exchange)
      : arguments_(arguments),
        program_(*at<const DeviceProgram>(arguments.program)),
        exchange_(exchange),
        mark_(mark_of_exchange(exchange)) {}

  SETO_KERNEL void run() const {
    if (exchange_ % kExchangesOfAge == 0 && !begin_age()) return;
    const std::uint32_t steps = program_.table<std::uint32_t>(program_.first_steps)[program_.stages];
    SETO_NO_UNROLL for (std::uint32_t s = 0; s < steps; ++s) {
      if (!run_step(program_.table<DeviceStep>(program_.steps)[s], s)) return;
    }
    // The same thread reads it for the next program.
    if (thread_index() == 0) at<WorkspaceBegin>(arguments_.workspace)->exchanges = exchange_;
  }

 private:
  using S = typename Number::Storage;
  using Accumulator = typename Number::Accumulator;
  using Vector = Wide<S>;
  static constexpr int kWords = sizeof(S) == 8 ? 2 : 1;                                   // of an item, which is one thread's
  static constexpr int kElements = sizeof(S) == 8 ? 1 : static_cast<int>(4 / sizeof(S));  // of an item
  static constexpr std::uint32_t kAtOnce = sizeof(S) >= 4 ? 8 : 4;  // sources whose words are under way together
  static constexpr std::uint32_t kLooks = 32;                       // at a word, for each look at the word that stops the kernel

  // A thread's part of a piece.
  struct Place {
    std::uint32_t step;
    std::uint32_t piece;
    std::uint64_t item;
    std::uint32_t valid;  // elements of the item that the piece has
  };

  // ---- the begin of an age of marks

  // Marks of the age before come again, so every rank clears its area, before all ranks meet: none sends words of this exchange
  // before. Nothing of an exchange before is on its way, because this rank has polled all words that were sent to it; what a
  // strong load has observed precedes all that follows the load (causality order of PTX). C++ has no such rule for plain stores.
  SETO_KERNEL bool begin_age() const {
    const Address area = arguments_.workspace + kMarkedPlace;
    if constexpr (kOnGpu) {
      for (std::uint32_t i = thread_index(); i < kMarkedArea / sizeof(Words); i += thread_count())
        store(at<std::byte>(area) + i * sizeof(Words), Words{});
    } else {
      for (std::uint32_t i = 0; i < kMarkedArea / sizeof(std::uint64_t); ++i) store_marked(at<std::uint64_t>(area) + i, 0);
    }
    barrier();
    return meet();
  }

  // False: the block was stopped.
  SETO_KERNEL bool meet() const {
    const auto* const peers = program_.table<PeerEnd>(program_.peers);
    for (std::uint32_t k = thread_index(); k < program_.peer_count; k += thread_count())
      store_release(at<std::uint64_t>(peers[k].done_there) + kMeeting, exchange_);
    bool stopped = false;
    for (std::uint32_t k = thread_index(); k < program_.peer_count; k += thread_count())
      stopped =
          stopped || !reaches(arguments_, 0, at<std::uint64_t>(peers[k].done_here) + kMeeting, exchange_, {k, kWaitsForDone, 0});
    return !barrier_any(stopped);
  }

  // ---- steps

  SETO_KERNEL bool run_step(const DeviceStep& step, std::uint32_t s) const {
    SETO_NO_UNROLL for (std::uint32_t piece = 0; piece < step.pieces; ++piece) {
      const std::uint64_t length = program_.table<std::uint64_t>(program_.lengths)[step.first_piece + piece];
      SETO_NO_UNROLL for (std::uint64_t item = thread_index(); item * kElements < length; item += thread_count()) {
        const std::uint64_t left = length - item * kElements;
        const Place place{s, piece, item, left < kElements ? static_cast<std::uint32_t>(left) : kElements};
        Words value{};
        if (!make(step, place, value)) return false;
        SETO_NO_UNROLL for (std::uint32_t k = 0; k < step.target_count; ++k) put(step, place, k, value);
      }
    }
    return true;
  }

  SETO_KERNEL const DeviceOperand& operand_of(const DeviceStep& step, std::uint32_t k) const {
    return program_.table<DeviceOperand>(program_.operands)[step.first_operand + k];
  }

  // The words of the item in a message. The slots of a channel, whose number is a power of two, are used in turn.
  SETO_KERNEL std::uint64_t* words_of(const DeviceOperand& operand, const Place& place) const {
    const ChannelEnd& end = program_.table<ChannelEnd>(program_.ends)[operand.end];
    const std::uint64_t slot = std::uint64_t{static_cast<std::uint32_t>(exchange_) & (end.depth - 1)} * end.slot_size;
    const std::uint64_t piece = std::uint64_t{place.piece} * program_.piece_stride / kDataOfWord;
    return at<std::uint64_t>(end.slots + slot) + piece + place.item * kWords;
  }

  SETO_KERNEL Address elements_of(const DeviceStep& step, const Place& place, std::uint32_t k) const {
    const DeviceOperand& operand = operand_of(step, k);
    const std::uint32_t operands = step.source_count + step.target_count;
    const Address base = operand.space == OperandSpace::input    ? arguments_.input
                         : operand.space == OperandSpace::output ? arguments_.output
                                                                 : arguments_.scratch;
    return base + program_.table<std::uint64_t>(program_.offsets)[step.first_offset + place.piece * operands + k] +
           place.item * (kElements * sizeof(S));
  }

  // ---- sources

  // A first look at the words of a source. Those of memory are ready.
  SETO_KERNEL void look(const DeviceStep& step, const Place& place, std::uint32_t k, std::uint64_t (&word)[kWords]) const {
    const DeviceOperand& operand = operand_of(step, k);
    if (is_message(operand.space)) {
      const std::uint64_t* const from = words_of(operand, place);
      SETO_UNROLL for (int w = 0; w < kWords; ++w) word[w] = load_marked(from + w);
      return;
    }
    Words raw{};
    const auto* const from = at<const std::byte>(elements_of(step, place, k));
    SETO_UNROLL for (int i = 0; i < kElements; ++i) {
      if (static_cast<std::uint32_t>(i) < place.valid) Vector::put(raw, i, load<S>(from + i * sizeof(S)));
    }
    SETO_UNROLL for (int w = 0; w < kWords; ++w) word[w] = marked(raw.word[w]);
  }

  // Looks until all words have the mark. False: the block was stopped.
  SETO_KERNEL bool await(const DeviceStep& step, const Place& place, std::uint32_t k, std::uint64_t (&word)[kWords]) const {
    SETO_UNROLL for (int w = 0; w < kWords; ++w) {
      if (has_mark(word[w])) continue;
      const std::uint64_t* const from = words_of(operand_of(step, k), place) + w;
      std::uint32_t looks = 0;
      do {
        if (++looks % kLooks == 0 && load_relaxed(at<std::uint32_t>(arguments_.stop)) != 0) {
          report_stop(arguments_, 0, {place.step, k, 0});
          return false;
        }
        wait_a_little();
        word[w] = load_marked(from);
      } while (!has_mark(word[w]));
    }
    return true;
  }

  SETO_KERNEL static Words data_of(const std::uint64_t (&word)[kWords]) {
    Words raw{};
    SETO_UNROLL for (int w = 0; w < kWords; ++w) raw.word[w] = static_cast<std::uint32_t>(word[w]);
    return raw;
  }

  // ---- the value of an item

  SETO_KERNEL bool make(const DeviceStep& step, const Place& place, Words& value) const {
    if (step.source_count == 1 && step.scaled == 0 && step.divisor <= 1) {
      std::uint64_t word[kWords]{};
      look(step, place, 0, word);
      if (!await(step, place, 0, word)) return false;
      value = data_of(word);
      return true;
    }
    Pass pass;
    pass.scaled = step.scaled;
    pass.scalar = at<const void>(arguments_.scalar);
    const Terms<Number> terms(pass);
    Values values{};
    SETO_NO_UNROLL for (std::uint32_t first = 0; first < step.source_count; first += kAtOnce) {
      Sources sources{first, step.source_count, {}};
      SETO_UNROLL for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        if (sources.has(k)) look(step, place, first + k, sources.word[k]);
      }
      SETO_UNROLL for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        if (sources.has(k) && !await(step, place, first + k, sources.word[k])) return false;
      }
      take(terms, sources, values);
    }
    value = {};
    SETO_UNROLL for (int i = 0; i < kElements; ++i) Vector::put(value, i, finish<Number>(values.of[i], step.divisor));
    return true;
  }

  struct Values {
    Accumulator of[kElements];
  };

  // Some of the sources of a step.
  struct Sources {
    std::uint32_t first;
    std::uint32_t end;  // of all sources
    std::uint64_t word[kAtOnce][kWords];
    [[nodiscard]] SETO_KERNEL bool has(std::uint32_t k) const { return first + k < end; }
  };

  SETO_KERNEL void take(const Terms<Number>& terms, const Sources& sources, Values& values) const {
    switch (static_cast<ReduceOp>(program_.op)) {
      case ReduceOp::prod:
        return take_by<Product>(terms, sources, values);
      case ReduceOp::max:
        return take_by<Maximum>(terms, sources, values);
      case ReduceOp::min:
        return take_by<Minimum>(terms, sources, values);
      case ReduceOp::bit_and:
        if constexpr (std::is_integral_v<Accumulator>) return take_by<BitAnd>(terms, sources, values);
        break;
      case ReduceOp::bit_or:
        if constexpr (std::is_integral_v<Accumulator>) return take_by<BitOr>(terms, sources, values);
        break;
      case ReduceOp::bit_xor:
        if constexpr (std::is_integral_v<Accumulator>) return take_by<BitXor>(terms, sources, values);
        break;
      default:
        break;
    }
    take_by<Sum>(terms, sources, values);
  }

  // From the left, as a pass does.
  template <class Op>
  SETO_KERNEL static void take_by(const Terms<Number>& terms, const Sources& sources, Values& values) {
    SETO_UNROLL for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (!sources.has(k)) continue;
      const Words raw = data_of(sources.word[k]);
      const bool scales = terms.scales(sources.first + k);
      SETO_UNROLL for (int i = 0; i < kElements; ++i) {
        const S number = Vector::get(raw, i);
        const Accumulator term = scales ? terms.scaled(number) : Number::widen(number);
        values.of[i] = sources.first + k == 0 ? term : Op::fold(values.of[i], term);
      }
    }
  }

  // ---- targets

  [[nodiscard]] SETO_KERNEL bool has_mark(std::uint64_t word) const {
    return static_cast<std::uint32_t>(word >> kMarkShift) == mark_;
  }
  SETO_KERNEL std::uint64_t marked(std::uint32_t data) const { return std::uint64_t{mark_} << kMarkShift | data; }

  SETO_KERNEL void put(const DeviceStep& step, const Place& place, std::uint32_t target, const Words& value) const {
    const std::uint32_t k = step.source_count + target;
    const DeviceOperand& operand = operand_of(step, k);
    if (is_message(operand.space)) {
      std::uint64_t* const to = words_of(operand, place);
      SETO_UNROLL for (int w = 0; w < kWords; ++w) store_marked(to + w, marked(value.word[w]));
      return;
    }
    auto* const to = at<std::byte>(elements_of(step, place, k));
    SETO_UNROLL for (int i = 0; i < kElements; ++i) {
      if (static_cast<std::uint32_t>(i) < place.valid) store<S>(to + i * sizeof(S), Vector::get(value, i));
    }
  }

  const DeviceArguments& arguments_;
  const DeviceProgram& program_;
  const std::uint64_t exchange_;
  const std::uint32_t mark_;
};

}  // namespace seto::kernels

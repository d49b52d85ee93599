#pragma once

#include "src/engine/kernels/coded_pass.h"
#include "src/engine/kernels/device_program.h"
#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/plain_pass.h"
#include "src/engine/kernels/threads.h"

namespace seto::kernels {

// Codecs need many registers and much code, so programs with a codec have kernels of their own.
enum class Encoding : std::uint8_t { none, some };

// Memory that the threads of a block share. Two sets of addresses are used in turn, so that one barrier a piece is enough: a
// thread that fills a set has seen all threads leave the pass before last, which used it.
struct BlockMemory {
  const std::byte* sources[2][kMostDeviceOperands / 2];
  std::byte* targets[2][kMostDeviceOperands / 2];
};

// Executes a device program as one block. All its threads run it alike; Number is the program's type (numbers.h).
template <class Number, Encoding kEncoding>
class BlockInterpreter final {
 public:
  SETO_KERNEL BlockInterpreter(const DeviceArguments& arguments, BlockMemory& memory, std::uint32_t block)
      : arguments_(arguments),
        program_(*at<const DeviceProgram>(arguments.program)),
        memory_(memory),
        block_(block),
        operation_(workspace().operation + 1) {}

  SETO_KERNEL void run() {
    const auto* const first_steps = program_.table<std::uint32_t>(program_.first_steps);
    const std::uint64_t rounds = program_.stages == 0 ? 0 : program_.slices + program_.stages - 1;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t oldest = round < program_.slices ? 0 : round - program_.slices + 1;
      const std::uint64_t end = round + 1 < program_.stages ? round + 1 : program_.stages;
      for (step_ = first_steps[oldest]; step_ < first_steps[end]; ++step_) {
        const DeviceStep& step = program_.table<DeviceStep>(program_.steps)[step_];
        slice_ = static_cast<std::uint32_t>(round - step.stage);
        if (!run_step(step)) return;
      }
    }
    finish();
  }

 private:
  SETO_KERNEL WorkspaceBegin& workspace() const { return *at<WorkspaceBegin>(arguments_.workspace); }
  SETO_KERNEL std::uint64_t* flag(Address first) const { return at<std::uint64_t>(first + block_ * kFlagStride); }
  SETO_KERNEL const DeviceOperand& operand_of(const DeviceStep& step, std::uint32_t k) const {
    return program_.table<DeviceOperand>(program_.operands)[step.first_operand + k];
  }
  SETO_KERNEL const ChannelEnd& end_of(const DeviceOperand& operand) const {
    return program_.table<ChannelEnd>(program_.ends)[operand.end];
  }

  SETO_KERNEL bool run_step(const DeviceStep& step) {
    const bool stopped = !wait_for_peers(step);
    for (std::uint32_t piece = 0; piece < step.pieces; ++piece) {
      set_addresses(step, piece);
      if (barrier_any(piece == 0 && stopped)) return false;
      run_pass(step, piece);
      set_ ^= 1;
    }
    barrier();
    tell_peers(step);
    return true;
  }

  // ---- waiting: each thread waits for other ends

  // Before the first step. A rank that has none touches no memory of other ranks.
  SETO_KERNEL bool wait_for_last_operation() const {
    const auto* const peers = program_.table<PeerEnd>(program_.peers);
    for (std::uint32_t k = thread_index(); k < program_.peer_count; k += thread_count())
      if (!reaches(at<std::uint64_t>(peers[k].done_here), operation_ - 1, {k, kWaitsForDone, 0})) return false;
    return true;
  }

  SETO_KERNEL bool wait_for_peers(const DeviceStep& step) const {
    if ((step_ | slice_) == 0 && !wait_for_last_operation()) return false;
    for (std::uint32_t k = thread_index(); k < step.source_count + step.target_count; k += thread_count()) {
      const DeviceOperand& operand = operand_of(step, k);
      if (operand.space != OperandSpace::channel) continue;
      const ChannelEnd& end = end_of(operand);
      const bool receives = k < step.source_count;
      if (!receives && slice_ < end.depth) continue;  // its slot has not been used yet
      const Mark needed = mark_of(operation_, receives ? slice_ + 1 : slice_ + 1 - end.depth);
      if (!reaches(flag(receives ? end.posted : end.read), needed, {step_, k, slice_})) return false;
    }
    return true;
  }

  SETO_KERNEL bool reaches(const std::uint64_t* word, std::uint64_t needed, const StopReport& report) const {
    while (load_acquire(word) < needed) {
      if (load_relaxed(at<std::uint32_t>(arguments_.stop)) != 0) {
        store_relaxed(at<std::uint64_t>(arguments_.reports) + block_, word_of(report));
        return false;
      }
      wait_a_little();
    }
    return true;
  }

  SETO_KERNEL void tell_peers(const DeviceStep& step) const {
    for (std::uint32_t k = thread_index(); k < step.source_count + step.target_count; k += thread_count()) {
      const DeviceOperand& operand = operand_of(step, k);
      if (operand.space != OperandSpace::channel) continue;
      const ChannelEnd& end = end_of(operand);
      store_release(flag(k < step.source_count ? end.read : end.posted), mark_of(operation_, slice_ + 1));
    }
  }

  // ---- working

  SETO_KERNEL void set_addresses(const DeviceStep& step, std::uint32_t piece) const {
    const std::uint32_t operands = step.source_count + step.target_count;
    const std::uint64_t* const offsets = program_.table<std::uint64_t>(program_.offsets) + step.first_offset + piece * operands;
    for (std::uint32_t k = thread_index(); k < operands; k += thread_count()) {
      const bool is_source = k < step.source_count;
      const std::uint32_t index = is_source ? k : k - step.source_count;
      const bool coded = ((is_source ? step.coded_sources : step.coded_targets) >> index & 1) != 0;
      const Address address = address_of(operand_of(step, k), piece, coded, offsets[k]);
      if (is_source)
        memory_.sources[set_][index] = at<const std::byte>(address);
      else
        memory_.targets[set_][index] = at<std::byte>(address);
    }
  }

  SETO_KERNEL Address address_of(const DeviceOperand& operand, std::uint32_t piece, bool coded, std::uint64_t offset) const {
    if (operand.space == OperandSpace::channel) {
      const ChannelEnd& end = end_of(operand);
      const std::uint64_t slot = block_ * end.block_stride + std::uint64_t{slice_ % end.depth} * end.slot_size;
      return end.slots + slot + std::uint64_t{piece} * (coded ? program_.coded_piece_stride : program_.piece_stride);
    }
    const Address base = operand.space == OperandSpace::input    ? arguments_.input
                         : operand.space == OperandSpace::output ? arguments_.output
                                                                 : arguments_.scratch;
    return base + offset + first_element() * program_.element_size;
  }

  // The part of this block in a piece of the slice begins here.
  SETO_KERNEL std::uint64_t first_element() const { return slice_ * program_.slice_elements + block_ * program_.part_elements; }

  SETO_KERNEL std::uint64_t elements_of(std::uint64_t length) const {
    const std::uint64_t end_of_slice = (slice_ + std::uint64_t{1}) * program_.slice_elements;
    const std::uint64_t end = length < end_of_slice ? length : end_of_slice;
    const std::uint64_t first = first_element();
    if (first >= end) return 0;
    return end - first < program_.part_elements ? end - first : program_.part_elements;
  }

  SETO_KERNEL void run_pass(const DeviceStep& step, std::uint32_t piece) const {
    Pass pass;
    pass.sources = memory_.sources[set_];
    pass.targets = memory_.targets[set_];
    pass.source_count = step.source_count;
    pass.target_count = step.target_count;
    pass.count = elements_of(program_.table<std::uint64_t>(program_.lengths)[step.first_piece + piece]);
    if (pass.count == 0) return;
    pass.scaled = step.scaled;
    pass.scalar = at<const void>(arguments_.scalar);
    pass.coded_sources = step.coded_sources;
    pass.coded_targets = step.coded_targets;
    pass.divisor = step.divisor;
    pass.moves = step.moves != 0;
    pass.rounds = step.rounds != 0;
    if constexpr (kEncoding == Encoding::some) {
      if ((step.coded_sources | step.coded_targets) != 0 || pass.rounds) {
        pass.residual = residual_of(step, piece);
        coded_pass<Number>(static_cast<Codec>(program_.codec - 1), pass);  // plans number codecs from 1
        return;
      }
    }
    reduce_pass<Number>(static_cast<ReduceOp>(program_.op), pass);  // moves, too: two calls would double its code
  }

  SETO_KERNEL std::byte* residual_of(const DeviceStep& step, std::uint32_t piece) const {
    const std::uint64_t offset = program_.table<std::uint64_t>(program_.residuals)[step.first_piece + piece];
    if (arguments_.residual == 0 || offset == kNoDeviceResidual) return nullptr;
    return at<std::byte>(arguments_.residual + offset + first_element() * program_.residual_size);
  }

  // ---- the end

  // The last block tells all ranks that this one has done the operation: nothing of it is read or written here any more.
  SETO_KERNEL void finish() const {
    barrier();
    const bool is_last = thread_index() == 0 && count_up(&workspace().finished_blocks) + 1 == program_.blocks;
    if (!barrier_any(is_last)) return;
    const auto* const peers = program_.table<PeerEnd>(program_.peers);
    for (std::uint32_t k = thread_index(); k < program_.peer_count; k += thread_count())
      store_release(at<std::uint64_t>(peers[k].done_there), operation_);
    if (thread_index() != 0) return;
    workspace().finished_blocks = 0;
    workspace().operation = operation_;
  }

  const DeviceArguments& arguments_;
  const DeviceProgram& program_;
  BlockMemory& memory_;
  const std::uint32_t block_;
  const std::uint64_t operation_;
  std::uint32_t step_ = 0;
  std::uint32_t slice_ = 0;
  std::uint32_t set_ = 0;  // of the addresses
};

}  // namespace seto::kernels

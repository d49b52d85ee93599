#pragma once

#include <new>

#include "src/engine/kernels/coded_pass.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/device_program.h"
#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/plain_pass.h"
#include "src/engine/kernels/threads.h"

namespace seto::kernels {

// Codecs need many registers and much code, so programs with a codec have kernels of their own.
enum class Encoding : std::uint8_t { none, some };

// How far a block is in its program.
struct Position {
  std::uint64_t operation;
  std::uint64_t round;
  std::uint32_t step;
  std::uint32_t last_step;  // the first one that is not of the round
  std::uint32_t piece;      // the next one of the step
  std::uint32_t is_begun;   // 0 before the first step
};

// Memory that the threads of a block share. Two sets are used in turn, so that one barrier a piece is enough: a thread that fills
// a set has seen all threads leave the pass before last, which used it.
struct BlockMemory {
  const std::byte* sources[2][kMostDeviceOperands / 2];
  std::byte* targets[2][kMostDeviceOperands / 2];
  alignas(Pass) std::byte passes[2][sizeof(Pass)];  // memory that blocks share has no constructors
  Position positions[2];

  SETO_KERNEL const Pass& pass(std::uint32_t set) const { return *reinterpret_cast<const Pass*>(passes[set]); }
};

// A thread that leaves a program because it was stopped says so. Programs of later kernels would take the number of this one
// again, and peers that come late would take their messages for those of this program. So no later program begins.
SETO_KERNEL void note_stop(const DeviceArguments& arguments) {
  store_relaxed(&at<WorkspaceBegin>(arguments.workspace)->stopped, 1);
}

SETO_KERNEL void report_stop(const DeviceArguments& arguments, std::uint32_t block, const StopReport& report) {
  note_stop(arguments);
  store_relaxed(at<std::uint64_t>(arguments.reports) + block, word_of(report));
}

// Waits until a word that another block writes is at least `needed`. False: the block was stopped, and has reported where.
SETO_KERNEL bool reaches(const DeviceArguments& arguments, std::uint32_t block, const std::uint64_t* word, std::uint64_t needed,
                         const StopReport& report) {
  while (load_acquire(word) < needed) {
    if (load_relaxed(at<std::uint32_t>(arguments.stop)) != 0) {
      report_stop(arguments, block, report);
      return false;
    }
    wait_a_little();
  }
  return true;
}

// The work of a block between two passes. It is made anew from the shared memory each time: registers that held its state during
// a pass would be too many beside those of the pass.
class BlockSteps final {
 public:
  SETO_KERNEL BlockSteps(const DeviceArguments& arguments, BlockMemory& memory, std::uint32_t block, const Position& position,
                         std::uint32_t set)
      : arguments_(arguments),
        program_(*at<const DeviceProgram>(arguments.program)),
        memory_(memory),
        block_(block),
        operation_(position.operation),
        position_(position),
        step_(position.step),
        set_(set) {}

  // Ends the step whose last piece is done, and prepares the next pass in the shared memory. False if there is none: the program
  // is done, or the block was stopped.
  SETO_KERNEL bool advance() {
    bool stopped = false;
    if (position_.is_begun == 0 || position_.piece == step().pieces) {
      if (position_.is_begun != 0) end_step();
      if (!find_step()) {
        finish();
        return false;
      }
      stopped = !wait_for_peers(step());
    }
    slice_ = slice_of(step());
    set_addresses(step(), position_.piece);
    set_pass(step(), position_.piece);
    if (!barrier_any(stopped)) return true;
    withdraw();
    return false;
  }

 private:
  SETO_KERNEL const DeviceStep& step() const { return program_.table<DeviceStep>(program_.steps)[step_]; }
  SETO_KERNEL std::uint32_t slice_of(const DeviceStep& step) const {
    return static_cast<std::uint32_t>(position_.round - step.stage);
  }

  SETO_KERNEL void end_step() {
    slice_ = slice_of(step());
    barrier();
    tell_peers(step());
    ++step_;
  }

  // The next step, in this round or in one after it. False after the last one.
  SETO_KERNEL bool find_step() {
    while (step_ == position_.last_step) {
      position_.round += position_.is_begun;
      position_.is_begun = 1;
      if (program_.stages == 0 || position_.round >= program_.slices + program_.stages - 1) return false;
      const auto* const first_steps = program_.table<std::uint32_t>(program_.first_steps);
      const std::uint64_t oldest = position_.round < program_.slices ? 0 : position_.round - program_.slices + 1;
      const std::uint64_t end = position_.round + 1 < program_.stages ? position_.round + 1 : program_.stages;
      step_ = first_steps[oldest];
      position_.last_step = first_steps[end];
    }
    position_.piece = 0;
    slice_ = slice_of(step());
    return true;
  }

  SETO_KERNEL WorkspaceBegin& workspace() const { return *at<WorkspaceBegin>(arguments_.workspace); }
  SETO_KERNEL std::uint64_t* flag(Address first) const { return at<std::uint64_t>(first + block_ * kFlagStride); }
  SETO_KERNEL const DeviceOperand& operand_of(const DeviceStep& step, std::uint32_t k) const {
    return program_.table<DeviceOperand>(program_.operands)[step.first_operand + k];
  }
  SETO_KERNEL const ChannelEnd& end_of(const DeviceOperand& operand) const {
    return program_.table<ChannelEnd>(program_.ends)[operand.end];
  }
  // Written before the first flag of the operation, and read after it by the same thread as the flag.
  SETO_KERNEL Address& lent_place(const ChannelEnd& end) const { return flag(end.posted)[kLentPlace]; }

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
      if (!is_message(operand.space)) continue;
      const ChannelEnd& end = end_of(operand);
      const bool receives = k < step.source_count;
      if (!receives && (is_lent(operand.space) || slice_ < end.depth)) continue;  // it has no slot, or a new one
      const Mark needed = mark_of(operation_, receives ? slice_ + 1 : slice_ + 1 - end.depth);
      if (!reaches(flag(receives ? end.posted : end.read), needed, {step_, k, slice_})) return false;
    }
    return true;
  }

  SETO_KERNEL bool reaches(const std::uint64_t* word, std::uint64_t needed, const StopReport& report) const {
    return kernels::reaches(arguments_, block_, word, needed, report);
  }

  SETO_KERNEL void tell_peers(const DeviceStep& step) const {
    for (std::uint32_t k = thread_index(); k < step.source_count + step.target_count; k += thread_count()) {
      const DeviceOperand& operand = operand_of(step, k);
      if (!is_message(operand.space)) continue;
      const ChannelEnd& end = end_of(operand);
      const bool receives = k < step.source_count;
      if (is_lent(operand.space)) {
        if (receives && slice_ + 1 < program_.slices) continue;  // the sender waits for the last one only
        if (!receives && slice_ == 0)
          lent_place(end) = (operand.space == OperandSpace::lent_input ? arguments_.input : arguments_.output) +
                            program_.table<std::uint64_t>(program_.offsets)[step.first_offset + k];
      }
      store_release(flag(receives ? end.read : end.posted), mark_of(operation_, slice_ + 1));
    }
  }

  // ---- working

  SETO_KERNEL void set_addresses(const DeviceStep& step, std::uint32_t piece) const {
    const std::uint32_t operands = step.source_count + step.target_count;
    const std::uint64_t* const offsets = program_.table<std::uint64_t>(program_.offsets) + step.first_offset + piece * operands;
    for (std::uint32_t k = thread_index(); k < operands - step.lent_targets; k += thread_count()) {
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
    if (is_lent(operand.space)) return lent_place(end_of(operand)) + first_element() * program_.element_size;
    if (is_message(operand.space)) {
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

  // The last thread does it, which has the fewest operands.
  SETO_KERNEL void set_pass(const DeviceStep& step, std::uint32_t piece) const {
    if (thread_index() + 1 != thread_count()) return;
    Position& position = memory_.positions[set_];
    position = position_;
    position.step = step_;
    position.piece = piece + 1;
    Pass& pass = *::new (static_cast<void*>(memory_.passes[set_])) Pass;
    pass.sources = memory_.sources[set_];
    pass.targets = memory_.targets[set_];
    pass.source_count = step.source_count;
    pass.target_count = step.target_count - step.lent_targets;
    pass.count =
        pass.target_count == 0 ? 0 : elements_of(program_.table<std::uint64_t>(program_.lengths)[step.first_piece + piece]);
    pass.scaled = step.scaled;
    pass.scalar = at<const void>(arguments_.scalar);
    pass.coded_sources = step.coded_sources;
    pass.coded_targets = step.coded_targets;
    pass.divisor = step.divisor;
    pass.moves = step.moves != 0;
    pass.rounds = step.rounds != 0;
    if ((step.coded_sources | step.coded_targets) != 0 || pass.rounds) pass.residual = residual_of(step, piece);
  }

  SETO_KERNEL std::byte* residual_of(const DeviceStep& step, std::uint32_t piece) const {
    const std::uint64_t offset = program_.table<std::uint64_t>(program_.residuals)[step.first_piece + piece];
    if (arguments_.residual == 0 || offset == kNoDeviceResidual) return nullptr;
    return at<std::byte>(arguments_.residual + offset + first_element() * program_.residual_size);
  }

  // ---- the end

  // The last block tells all ranks that this one has done the operation: nothing of it is read or written here any more.
  SETO_KERNEL void finish() const {
    const bool stopped = !wait_for_readers();
    if (barrier_any(stopped)) return withdraw();
    const bool is_last = thread_index() == 0 && count_up(&workspace().finished_blocks) + 1 == program_.blocks;
    if (!barrier_any(is_last)) return;
    const auto* const peers = program_.table<PeerEnd>(program_.peers);
    for (std::uint32_t k = thread_index(); k < program_.peer_count; k += thread_count())
      store_release(at<std::uint64_t>(peers[k].done_there), operation_);
    if (thread_index() != 0) return;
    workspace().finished_blocks = 0;
    workspace().operation = operation_;
  }

  // Calls act(end, report) for each message that the rank has lent, until it returns false.
  template <class Act>
  SETO_KERNEL bool for_each_lent(const Act& act) const {
    if (program_.lends == 0) return true;
    const std::uint32_t steps = program_.table<std::uint32_t>(program_.first_steps)[program_.stages];
    for (std::uint32_t s = 0; s < steps; ++s) {
      const DeviceStep& step = program_.table<DeviceStep>(program_.steps)[s];
      const std::uint32_t operands = step.source_count + step.target_count;
      for (std::uint32_t k = operands - step.lent_targets + thread_index(); k < operands; k += thread_count())
        if (!act(end_of(operand_of(step, k)), StopReport{s, k, static_cast<std::uint32_t>(program_.slices) - 1})) return false;
    }
    return true;
  }

  // The caller may write to its buffers when the kernel has ended.
  SETO_KERNEL bool wait_for_readers() const {
    return for_each_lent([this](const ChannelEnd& end, const StopReport& report) {
      return reaches(flag(end.read), mark_of(operation_, program_.slices), report);
    });
  }

  // The block was stopped. Peers that have not begun to read what it lent do not begin any more. For the others the host waits.
  SETO_KERNEL void withdraw() const {
    if (program_.lends == 0) return;
    for_each_lent([this](const ChannelEnd& end, const StopReport&) {
      store_relaxed(flag(end.posted), 0);
      return true;
    });
    while ((load_relaxed(at<std::uint32_t>(arguments_.stop)) & kStopAtOnce) == 0) wait_a_little();
  }

  const DeviceArguments& arguments_;
  const DeviceProgram& program_;
  BlockMemory& memory_;
  const std::uint32_t block_;
  const std::uint64_t operation_;
  Position position_;
  std::uint32_t step_;
  std::uint32_t slice_ = 0;
  const std::uint32_t set_;
};

}  // namespace seto::kernels

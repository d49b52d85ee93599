#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/software_gpu/bits.h"
#include "tests/software_gpu/memory_view.h"
#include "tests/software_gpu/program.h"
#include "tests/software_gpu/special_registers.h"
#include "tests/software_gpu/thread_order.h"

namespace seto::software_gpu {

class Block;
class Warp;

enum class ThreadState : std::uint8_t { ready, at_barrier, at_collective, exited };

// Bases of a call in the stacks of its thread.
struct Frame {
  const Function* function = nullptr;
  const CallSite* site = nullptr;  // in the caller
  std::uint32_t return_to = 0;
  std::uint32_t registers = 0, params = 0, locals = 0;
};

// One lane. Each has a position of its own in the code, and is scheduled alone.
class Thread final {
 public:
  Thread(Block& owner, Warp& in_warp, std::uint32_t number, const Function& entry);

  [[nodiscard]] std::uint64_t bits(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::reg:
        return registers_[operand.index];
      case Operand::Kind::immediate:
        return operand.value;
      default:
        return unusual_bits(operand);
    }
  }
  template <class T>
  [[nodiscard]] T get(const Operand& operand) const {
    return value_of<T>(bits(operand));
  }
  [[nodiscard]] bool predicate(const Operand& operand) const { return ((bits(operand) & 1) != 0) != operand.negated; }
  [[nodiscard]] Bits128 wide(const Operand& operand) const {
    return operand.kind == Operand::Kind::reg ? Bits128{registers_[operand.index], registers_[operand.index + 1]}
                                              : Bits128{bits(operand), 0};
  }

  void set_bits(const Operand& destination, std::uint64_t value) { registers_[destination.index] = value; }
  template <class T>
  void set(const Operand& destination, T value) {
    registers_[destination.index] = bits_of(value);
  }
  void set_wide(const Operand& destination, Bits128 value) {
    registers_[destination.index] = value.low;
    registers_[destination.index + 1] = value.high;
  }

  // Executes up to `steps` instructions, and stops earlier where the thread waits or gives its turn away. Returns their number.
  std::uint32_t run(std::uint32_t steps);

  void call(const CallSite& site, const Function& callee);
  // Returns from a call; from the kernel itself the thread exits.
  void return_from_call();
  void exit();
  void wait(ThreadState why);
  void wake();
  void end_turn() { turn_ended_ = true; }

  [[nodiscard]] const Function& function() const { return *frame_.function; }
  [[nodiscard]] bool predicate_allows(const Instruction& instruction) const {
    return instruction.predicate < 0 ||
           ((registers_[static_cast<std::size_t>(instruction.predicate)] & 1) != 0) != instruction.predicate_negated;
  }
  // "kernel k, block (1,0,0), thread (3,0,0), ptx line 12: 'ld.global.u32 ...'"
  [[nodiscard]] std::string place() const;

  Block& block;
  Warp& warp;
  const std::uint32_t index;  // in the block
  const std::uint32_t lane;   // in the warp
  std::uint32_t next = 0;     // index of the next instruction
  const Instruction* current = nullptr;
  ThreadState state = ThreadState::ready;
  bool carry = false;             // of add.cc and its like
  std::uint32_t vector_done = 0;  // elements of a vector load that have been loaded, and their values
  std::array<Bits128, 8> vector_parts{};
  std::uint32_t barrier_number = 0;       // of the barrier at which it waits
  std::vector<std::byte> params, locals;  // stacks of the frames
  MemoryView memory;
  ThreadOrder order;

  [[nodiscard]] std::uint64_t param_address(std::uint64_t offset) const { return frame_.params + offset; }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }
  [[nodiscard]] std::size_t call_depth() const { return callers_.size(); }

 private:
  [[nodiscard]] std::uint64_t unusual_bits(const Operand& operand) const;
  void enter(const Function& function);

  std::uint64_t* registers_ = nullptr;  // of the running frame
  std::vector<std::uint64_t> register_stack_;
  Frame frame_;
  std::vector<Frame> callers_;
  std::uint64_t executed_ = 0;
  bool turn_ended_ = false;
};

}  // namespace seto::software_gpu

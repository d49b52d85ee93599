#include "tests/software_gpu/thread.h"

#include "tests/software_gpu/block.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {

Thread::Thread(Block& owner, Warp& in_warp, std::uint32_t number, const Function& entry)
    : block(owner), warp(in_warp), index(number), lane(number % 32), order(owner.order, number) {
  enter(entry);
}

std::uint64_t Thread::unusual_bits(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::special:
      return read_special(*this, static_cast<SpecialRegister>(operand.index));
    case Operand::Kind::local_symbol:
      return frame_.locals + operand.value;
    default:
      return frame_.params + operand.value;
  }
}

std::uint32_t Thread::run(std::uint32_t steps) {
  turn_ended_ = false;
  std::uint32_t done = 0;
  try {
    while (done < steps && state == ThreadState::ready && !turn_ended_) {
      const Instruction& instruction = frame_.function->code[next++];
      ++done;
      if (predicate_allows(instruction)) {
        current = &instruction;
        instruction.handler(*this, instruction);
      }
    }
  } catch (const Fault& fault) {
    throw Fault(fault.kind(), std::string(fault.what()) + "; " + place());
  }
  executed_ += done;
  return done;
}

void Thread::enter(const Function& function) {
  frame_.function = &function;
  frame_.registers = static_cast<std::uint32_t>(register_stack_.size());
  frame_.params = static_cast<std::uint32_t>(params.size());
  frame_.locals = static_cast<std::uint32_t>(locals.size());
  // Fresh registers and stacks hold a pattern, so that a kernel that relies on zeros fails.
  register_stack_.resize(register_stack_.size() + function.register_slots, 0xA5A5A5A5A5A5A5A5U);
  params.resize(params.size() + ((function.param_bytes + 15U) & ~15U), std::byte{0xA5});
  locals.resize(locals.size() + ((function.local_bytes + 15U) & ~15U), std::byte{0xA5});
  registers_ = register_stack_.data() + frame_.registers;
  next = 0;
}

void Thread::call(const CallSite& site, const Function& callee) {
  constexpr std::size_t kDeepest = 64;
  if (callers_.size() == kDeepest) throw Fault(FaultKind::misuse, "calls are nested deeper than " + std::to_string(kDeepest));
  frame_.return_to = next;
  const Frame caller = frame_;
  callers_.push_back(caller);
  enter(callee);
  frame_.site = &site;
  for (std::size_t i = 0; i < callee.parameters.size(); ++i) {
    const Parameter& parameter = callee.parameters[i];
    std::memcpy(params.data() + frame_.params + parameter.offset, params.data() + caller.params + site.arguments[i],
                parameter.bytes);
  }
}

void Thread::return_from_call() {
  if (callers_.empty()) {
    exit();
    return;
  }
  const Frame callee = frame_;
  frame_ = callers_.back();
  callers_.pop_back();
  for (std::size_t i = 0; i < callee.site->results.size(); ++i) {
    const Parameter& result = callee.function->results[i];
    std::memcpy(params.data() + frame_.params + callee.site->results[i], params.data() + callee.params + result.offset,
                result.bytes);
  }
  register_stack_.resize(callee.registers);
  params.resize(callee.params);
  locals.resize(callee.locals);
  registers_ = register_stack_.data() + frame_.registers;
  next = frame_.return_to;
}

void Thread::exit() {
  block.machine.memory().end_thread(memory);
  state = ThreadState::exited;
  warp.exited(lane);
  block.exited();
}

void Thread::wait(ThreadState why) {
  state = why;
  warp.set_ready(lane, false);
}

void Thread::wake() {
  state = ThreadState::ready;
  warp.set_ready(lane, true);
}

std::string Thread::place() const {
  return place_in(block.launch.request, block.place.index, index, current == nullptr ? 0 : current->line);
}

}  // namespace seto::software_gpu

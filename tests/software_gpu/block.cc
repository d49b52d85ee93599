#include "tests/software_gpu/block.h"

#include <algorithm>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {

Block::Block(Machine& owner, Launch& of_launch, const Place& at, MemoryView& gpu_memory)
    : machine(owner),
      launch(of_launch),
      place(at),
      shared(of_launch.function->shared_bytes + of_launch.request.dynamic_shared, std::byte{0xA5}),
      order(owner.races().start_block(at.number, of_launch.number, at.index)) {
  memory = {.gpu = at.gpu, .block = at.number, .parent = &gpu_memory};
  const std::uint32_t count = of_launch.request.block.count();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % 32 == 0) warps.emplace_back(*this, i / 32);
    Thread& thread = threads_.emplace_back(*this, warps.back(), i, *of_launch.function);
    thread.memory = {.gpu = at.gpu, .block = at.number, .parent = &memory};
    MemoryModel::start_thread(thread.memory, of_launch.launched);
    std::copy(of_launch.request.arguments.begin(), of_launch.request.arguments.end(), thread.params.begin());
    warps.back().add(thread, i % 32);
  }
  live_threads_ = count;
}

bool Block::can_run(std::uint64_t now) const {
  return std::any_of(warps.begin(), warps.end(), [now](const Warp& warp) { return warp.can_run(now); });
}

void Block::arrive(Thread& thread, const Arrival& arrival) {
  if (arrival.barrier >= barriers_.size())
    throw Fault(FaultKind::misuse, "barrier " + std::to_string(arrival.barrier) + " does not exist: a block has 16");
  if (arrival.threads % 32 != 0)
    throw Fault(FaultKind::misuse, std::to_string(arrival.threads) + " threads at a barrier are no multiple of the warp size");
  Barrier& barrier = barriers_[arrival.barrier];
  if (barrier.arrived > 0 && barrier.expected != arrival.threads) {
    throw Fault(FaultKind::misuse, "threads at one barrier expect different numbers of threads: " +
                                       std::to_string(barrier.expected) + " and " + std::to_string(arrival.threads));
  }
  machine.memory().arrive_at_barrier(thread.memory);
  ++barrier.arrived;
  barrier.expected = arrival.threads;
  barrier.reduction = arrival.reduction;
  barrier.votes += arrival.predicate ? 1 : 0;
  if (machine.races().enabled()) barrier.arrivals.push_back(thread.order.release(Scope::block));
  if (arrival.waits) {
    thread.barrier_number = arrival.barrier;
    thread.wait(ThreadState::at_barrier);
    barrier.waiting.push_back(&thread);
  }
  open_if_complete(barrier);
}

void Block::exited() {
  --live_threads_;
  for (Barrier& barrier : barriers_)
    if (barrier.arrived > 0) open_if_complete(barrier);
}

void Block::open_if_complete(Barrier& barrier) {
  const std::uint32_t expected = barrier.expected != 0 ? barrier.expected : live_threads_;
  if (barrier.arrived < expected) return;
  check_alignment(barrier);
  if (machine.races().enabled()) order_threads(barrier);
  const std::uint32_t all = barrier.arrived;
  for (Thread* thread : barrier.waiting) {
    machine.memory().leave_barrier(thread->memory);
    const Instruction& instruction = *thread->current;
    if (barrier.reduction == Reduction::count) {
      thread->set(instruction.d[0], barrier.votes);
    } else if (barrier.reduction != Reduction::none) {
      const bool result = barrier.reduction == Reduction::all ? barrier.votes == all : barrier.votes > 0;
      thread->set_bits(instruction.d[0], result ? 1 : 0);
    }
    thread->wake();
  }
  barrier = {};
}

void Block::order_threads(const Barrier& barrier) {
  std::vector<ThreadOrder*> leaving;
  for (Thread* thread : barrier.waiting) leaving.push_back(&thread->order);
  if (barrier.waiting.size() == live_threads_)
    join_block(order, barrier.arrivals, leaving);
  else
    join_arrivals(barrier.arrivals, leaving);
}

// bar.sync is an aligned barrier: that lanes of one warp wait at two of them is an error on a GPU whose warps run together.
void Block::check_alignment(const Barrier& barrier) {
  constexpr std::uint32_t kAligned = 1;
  std::array<const Thread*, 32> first_of_warp{};
  for (const Thread* thread : barrier.waiting) {
    if ((thread->current->flags & kAligned) == 0) continue;
    const Thread*& first = first_of_warp[thread->warp.index];
    if (first != nullptr && first->current != thread->current) {
      throw Fault(FaultKind::misuse, "lanes of warp " + std::to_string(thread->warp.index) +
                                         " wait at different bar.sync instructions: ptx lines " +
                                         std::to_string(first->current->line) + " and " + std::to_string(thread->current->line));
    }
    first = thread;
  }
}

}  // namespace seto::software_gpu

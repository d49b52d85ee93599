#include "tests/software_gpu/warp.h"

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/report_text.h"
#include "tests/software_gpu/thread.h"

namespace seto::software_gpu {

void Warp::add(Thread& thread, std::uint32_t lane) {
  lanes_[lane] = &thread;
  live_ |= 1U << lane;
  ready_ |= 1U << lane;
}

void Warp::exited(std::uint32_t lane) {
  live_ &= ~(1U << lane);
  set_ready(lane, false);
  for (std::uint32_t other = 0; other < 32; ++other)
    if (waiting_[other].collective != nullptr) try_meeting(other);
}

void Warp::meet(Thread& thread, std::uint32_t members, Collective collective) {
  if (((members >> thread.lane) & 1) == 0) {
    throw Fault(FaultKind::misuse,
                "lane " + std::to_string(thread.lane) + " is not in its own member mask " + hexadecimal(members));
  }
  waiting_[thread.lane] = {collective, members, thread.current};
  thread.wait(ThreadState::at_collective);
  try_meeting(thread.lane);
}

void Warp::try_meeting(std::uint32_t lane) {
  const Waiting wanted = waiting_[lane];
  const std::uint32_t members = wanted.members & live_;
  for (std::uint32_t rest = members; rest != 0; rest &= rest - 1) {
    const Waiting& other = waiting_[static_cast<std::uint32_t>(__builtin_ctz(rest))];
    if (other.collective == nullptr) return;
    const bool matches = other.collective == wanted.collective && other.members == wanted.members &&
                         other.instruction->detail == wanted.instruction->detail &&
                         other.instruction->flags == wanted.instruction->flags;
    if (!matches) {
      throw Fault(FaultKind::misuse,
                  "lanes of the member mask " + hexadecimal(wanted.members) + " wait at different instructions: ptx lines " +
                      std::to_string(wanted.instruction->line) + " and " + std::to_string(other.instruction->line) +
                      ", the latter with mask " + hexadecimal(other.members));
    }
  }
  wanted.collective(*this, members, *wanted.instruction);
  for_each_lane(*this, members, [&](Thread& thread) {
    waiting_[thread.lane] = {};
    thread.wake();
  });
}

}  // namespace seto::software_gpu

// Branches, calls, barriers of a block, the end.
#include <array>
#include <string>
#include <vector>

#include "tests/software_gpu/block.h"
#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {
namespace {

void branch(Thread& thread, const Instruction& in) { thread.next = in.target; }

bool resolve_branch(Modifiers& modifiers, Instruction& in) {
  modifiers.take("uni");
  in.handler = &branch;
  return true;
}

void branch_by_table(Thread& thread, const Instruction& in) {
  const auto& table = thread.function().label_tables[in.target];
  const auto index = thread.get<std::uint32_t>(in.s[0]);
  if (index >= table.size()) {
    throw Fault(FaultKind::misuse,
                "index " + std::to_string(index) + " of a table of " + std::to_string(table.size()) + " labels");
  }
  thread.next = table[index];
}

bool resolve_branch_by_table(Modifiers& modifiers, Instruction& in) {
  modifiers.take("uni");
  in.handler = modifiers.take("idx") ? &branch_by_table : nullptr;
  return true;
}

void call(Thread& thread, const Instruction& in) {
  const CallSite& site = thread.function().calls[in.target];
  thread.call(site, *thread.block.launch.request.program->functions[site.function]);
}

bool resolve_call(Modifiers& modifiers, Instruction& in) {
  modifiers.take("uni");
  in.handler = &call;
  return true;
}

bool resolve_return(Modifiers& modifiers, Instruction& in) {
  modifiers.take("uni");
  in.handler = [](Thread& thread, const Instruction&) { thread.return_from_call(); };
  return true;
}

bool resolve_exit(Modifiers& /*modifiers*/, Instruction& in) {
  in.handler = [](Thread& thread, const Instruction&) { thread.exit(); };
  return true;
}

bool resolve_trap(Modifiers& /*modifiers*/, Instruction& in) {
  in.handler = [](Thread&, const Instruction&) { throw Fault(FaultKind::trap, "the kernel trapped"); };
  return true;
}

// flags: 1: aligned; detail: bit 0: the threads wait; above: the reduction.
void arrive(Thread& thread, const Instruction& in) {
  const auto reduction = static_cast<Block::Reduction>(in.detail >> 1);
  const bool reduces = reduction != Block::Reduction::none;
  const std::uint32_t last = in.sources - (reduces ? 1U : 0U);  // the operand after barrier and number of threads
  thread.block.arrive(thread, {.barrier = thread.get<std::uint32_t>(in.s[0]),
                               .threads = last > 1 ? thread.get<std::uint32_t>(in.s[1]) : 0,
                               .waits = (in.detail & 1) != 0,
                               .reduction = reduction,
                               .predicate = reduces && thread.predicate(in.s[last])});
}

void synchronise_warp(Thread& thread, const Instruction& in) {
  thread.block.machine.memory().arrive_at_barrier(thread.memory);
  thread.warp.meet(thread, thread.get<std::uint32_t>(in.s[0]), [](Warp& warp, std::uint32_t members, const Instruction&) {
    Machine& machine = warp.block.machine;
    std::vector<Release> arrivals;
    std::vector<ThreadOrder*> leaving;
    for_each_lane(warp, members, [&](Thread& member) {
      machine.memory().leave_barrier(member.memory);
      if (!machine.races().enabled()) return;
      arrivals.push_back(member.order.release(Scope::block));
      leaving.push_back(&member.order);
    });
    if (machine.races().enabled()) join_arrivals(arrivals, leaving);
  });
}

bool resolve_barrier(Modifiers& modifiers, Instruction& in) {
  if (modifiers.take("warp")) {
    in.handler = modifiers.take("sync") ? &synchronise_warp : nullptr;
    return true;
  }
  modifiers.take("cta");
  in.flags = modifiers.take("aligned") || modifiers.name() == "bar" ? 1 : 0;
  constexpr std::array<std::string_view, 3> kReductions{"popc", "and", "or"};
  if (modifiers.take("sync")) {
    in.detail = 1;
  } else if (modifiers.take("red")) {
    const int reduction = modifiers.take_one_of(kReductions);
    const bool typed = modifiers.take("pred") || modifiers.take("u32");
    if (reduction < 0 || !typed || in.destinations != 1) return false;
    in.detail = 1 | (static_cast<std::uint32_t>(reduction + 1) << 1);
  } else if (!modifiers.take("arrive")) {
    return false;
  }
  in.handler = in.sources > 0 ? &arrive : nullptr;
  return true;
}

// A thread that waits for a time gives others a turn; no time passes but that of their instructions.
void give_turn_away(Thread& thread, const Instruction& /*in*/) { thread.end_turn(); }

bool resolve_wait(Modifiers& modifiers, Instruction& in) {
  in.handler = modifiers.take("u32") ? &give_turn_away : nullptr;
  return true;
}

bool resolve_event(Modifiers& modifiers, Instruction& in) {
  modifiers.take("mask");
  in.handler = [](Thread&, const Instruction&) {};
  return true;
}

constexpr std::array<OperationRow, 11> kRows{{
    {"bra", &resolve_branch},
    {"brx", &resolve_branch_by_table},
    {"call", &resolve_call},
    {"ret", &resolve_return},
    {"exit", &resolve_exit},
    {"trap", &resolve_trap},
    {"brkpt", &resolve_trap},
    {"bar", &resolve_barrier},
    {"barrier", &resolve_barrier},
    {"nanosleep", &resolve_wait},
    {"pmevent", &resolve_event},
}};

}  // namespace

std::span<const OperationRow> control_operations() { return kRows; }

}  // namespace seto::software_gpu

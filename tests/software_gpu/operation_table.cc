#include "tests/software_gpu/operation_table.h"

#include <array>
#include <string>

#include "tests/software_gpu/fault.h"

namespace seto::software_gpu {
namespace {

struct RefusedRow {
  std::string_view begin;  // of the opcode
  std::string_view why;
};

// Each would need a model of its own: an asynchronous proxy, a cluster, a tensor core.
constexpr std::array<RefusedRow, 22> kRefused{{
    {"cp.async", "asynchronous copies are not modelled; use ld and st"},
    {"cp.reduce.async", "asynchronous copies are not modelled; use ld and st"},
    {"mbarrier", "mbarrier objects are not modelled; use bar.sync"},
    {"barrier.cluster", "clusters are not modelled"},
    {"mapa", "clusters are not modelled"},
    {"getctarank", "clusters are not modelled"},
    {"fence.proxy.async", "one proxy is modelled, the generic one"},
    {"fence.proxy.tensormap", "one proxy is modelled, the generic one"},
    {"fence.mbarrier_init", "mbarrier objects are not modelled"},
    {"wgmma", "tensor cores are not modelled"},
    {"wmma", "tensor cores are not modelled"},
    {"mma", "tensor cores are not modelled"},
    {"ldmatrix", "tensor cores are not modelled"},
    {"stmatrix", "tensor cores are not modelled"},
    {"tcgen05", "tensor cores are not modelled"},
    {"st.async", "asynchronous stores are not modelled"},
    {"red.async", "asynchronous reductions are not modelled"},
    {"setmaxnreg", "registers of warp groups are not modelled"},
    {"griddepcontrol", "dependent launches are not modelled"},
    {"tex", "textures are not modelled"},
    {"suld", "surfaces are not modelled"},
    {"sust", "surfaces are not modelled"},
}};

Resolver find(std::string_view name) {
  static const auto kGroups = operation_groups();
  for (const auto group : kGroups) {
    for (const OperationRow& row : group)
      if (row.name == name) return row.resolve;
  }
  return nullptr;
}

[[noreturn]] void fail_unknown(std::string_view text, std::uint32_t line) {
  throw Fault(FaultKind::unknown_instruction, "ptx line " + std::to_string(line) + ": '" + std::string(text) +
                                                  "': this instruction is not known to the software GPU");
}

}  // namespace

std::vector<std::span<const OperationRow>> operation_groups() {
  return {integer_operations(), bit_operations(),     float_operations(),  compare_operations(),
          convert_operations(), move_operations(),    memory_operations(), multimem_operations(),
          atomic_operations(),  control_operations(), warp_operations()};
}

void require_known(std::string_view opcode, std::string_view text, std::uint32_t line) {
  for (const RefusedRow& row : kRefused) {
    const bool whole_word = opcode.size() == row.begin.size() || opcode[std::min(row.begin.size(), opcode.size() - 1)] == '.';
    if (opcode.starts_with(row.begin) && whole_word) {
      throw Fault(FaultKind::refused,
                  "ptx line " + std::to_string(line) + ": '" + std::string(text) + "': " + std::string(row.why));
    }
  }
  if (opcode.find("cluster") != std::string_view::npos) {
    throw Fault(FaultKind::refused,
                "ptx line " + std::to_string(line) + ": '" + std::string(text) + "': clusters are not modelled");
  }
  if (find(opcode.substr(0, opcode.find('.'))) == nullptr) fail_unknown(text, line);
}

void resolve_operation(std::string_view opcode, std::string_view text, Instruction& instruction) {
  Modifiers modifiers(opcode);
  const Resolver resolve = find(modifiers.name());
  if (!resolve(modifiers, instruction) || !modifiers.empty() || instruction.handler == nullptr)
    fail_unknown(text, instruction.line);
}

}  // namespace seto::software_gpu

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/software_gpu/instruction.h"
#include "tests/software_gpu/modifiers.h"

namespace seto::software_gpu {

// Sets the handler and what it needs. `instruction` already has its operands. Returns false if it is not an instruction that is
// known here; it may leave modifiers, which makes it unknown too.
using Resolver = bool (*)(Modifiers& modifiers, Instruction& instruction);

struct OperationRow {
  std::string_view name;
  Resolver resolve = nullptr;
};

// The groups, each in its own file.
[[nodiscard]] std::span<const OperationRow> integer_operations();
[[nodiscard]] std::span<const OperationRow> bit_operations();
[[nodiscard]] std::span<const OperationRow> float_operations();
[[nodiscard]] std::span<const OperationRow> compare_operations();
[[nodiscard]] std::span<const OperationRow> convert_operations();
[[nodiscard]] std::span<const OperationRow> move_operations();
[[nodiscard]] std::span<const OperationRow> memory_operations();
[[nodiscard]] std::span<const OperationRow> multimem_operations();
[[nodiscard]] std::span<const OperationRow> atomic_operations();
[[nodiscard]] std::span<const OperationRow> control_operations();
[[nodiscard]] std::span<const OperationRow> warp_operations();

// All of them.
[[nodiscard]] std::vector<std::span<const OperationRow>> operation_groups();

// Throws a Fault of kind refused or unknown_instruction if no group has an instruction of that name; `text` is its line.
void require_known(std::string_view opcode, std::string_view text, std::uint32_t line);

// Finds the handler of an instruction. Throws a Fault of kind unknown_instruction.
void resolve_operation(std::string_view opcode, std::string_view text, Instruction& instruction);

}  // namespace seto::software_gpu

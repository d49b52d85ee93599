#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/software_gpu/program.h"

namespace seto::software_gpu {

// Where a thread goes on after an instruction. If its predicate keeps it from being executed, always at the next one.
enum class Exit : std::uint8_t { next, branch, table, leaves };

[[nodiscard]] Exit exit_of(std::string_view opcode);

// Gives registers that never hold a value at the same time one slot. nvcc names a new register for nearly each result: 30,836
// in the kernel of floats. `exits`: one for each instruction of the code. `wide`: the registers
// of two slots, by the first one. A register that is read before it is written shares its slot with no earlier one, so it holds
// the pattern of fresh slots.
void share_register_slots(Function& function, const std::vector<Exit>& exits, const std::vector<std::uint32_t>& wide);

}  // namespace seto::software_gpu

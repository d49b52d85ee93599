#pragma once

#include "tests/software_gpu/instruction.h"
#include "tests/software_gpu/modifiers.h"

namespace seto::software_gpu {

// Takes the space, order and scope of ld, st, atom and red into the instruction. False if they do not go together.
[[nodiscard]] bool take_memory_modifiers(Modifiers& modifiers, Instruction& instruction);

}  // namespace seto::software_gpu

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/software_gpu/instruction.h"

namespace seto::software_gpu {

[[nodiscard]] std::optional<SpecialRegister> special_register_named(std::string_view name);

[[nodiscard]] std::uint64_t read_special(const Thread& thread, SpecialRegister which);

}  // namespace seto::software_gpu

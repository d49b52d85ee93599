#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace seto {

// Equal on two ranks: they may try to share memory (the meeting proves that they can). Made of the boot of the kernel, the
// network namespace, which local sockets live in, the user, without whom none of them opens, and whether memory can be shared.
// `override_id`, unless empty, takes the place of all that (SETO_HOST_ID, read by the caller).
[[nodiscard]] Result<std::string> host_identity(std::string_view override_id);

inline constexpr std::size_t kHostIdLimit = 256;

// Equal on all processes that take turns on the same cores, whatever separates them: containers, users. 0: it cannot be known.
[[nodiscard]] std::uint64_t machine_number();

}  // namespace seto

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace seto {

// Ranks with equal identities may try to share memory; the connection of two contexts proves that they can. The identity consists
// of the boot id of the kernel, the network namespace (local sockets belong to it), the user (other users cannot open them) and
// whether memory can be shared. `override_id`, unless empty, replaces it (SETO_HOST_ID, read by the caller).
[[nodiscard]] Result<std::string> host_identity(std::string_view override_id);

inline constexpr std::size_t kHostIdLimit = 256;

// A number that is equal for all processes that share the same cores, across containers and users. 0: unknown.
[[nodiscard]] std::uint64_t machine_number();

}  // namespace seto

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "transports/rdma/connect/devices.h"
#include "transports/rdma/verbs/requests.h"

namespace seto::rdma {

// SETO_RDMA without the word that keeps everything on its ports, alone or in front of names: "always".
[[nodiscard]] std::string_view without_always(std::string_view setting);

// The ports of SETO_RDMA; empty for "auto" and "always". Not for "off".
[[nodiscard]] Result<std::vector<PortName>> ports_in(std::string_view text);

// How packets are marked and repeated, as the settings say; the rest is of no peer yet.
[[nodiscard]] QueuePairPath path_in(const Config& config);

// Bytes of data in a packet at most, as the settings say; kNoMtuLimit: as many as both ports allow.
inline constexpr std::uint32_t kNoMtuLimit = ~0U;
[[nodiscard]] std::uint32_t most_mtu_in(const Config& config);

}  // namespace seto::rdma

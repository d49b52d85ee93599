#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace seto::rdma {

// The calls that can fail.
enum class ManagerCall : std::uint8_t {
  create_channel,
  create_id,
  set_class,
  bind,
  listen,
  resolve_address,
  resolve_route,
  connect,
  query_path,
  accept,
  establish,
};
inline constexpr std::size_t kManagerCalls = static_cast<std::size_t>(ManagerCall::establish) + 1;
[[nodiscard]] const char* name_of(ManagerCall call);

// The failure of a call with that errno: what happened and what to do.
[[nodiscard]] Status manager_failure(ManagerCall call, int error);

}  // namespace seto::rdma

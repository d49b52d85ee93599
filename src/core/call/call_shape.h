#pragma once

#include <cstdint>

#include "src/core/call/collective_call.h"
#include "src/plan/chunk_map.h"
#include "src/plan/plan.h"

namespace seto {

// How contributions to the call become its result.
[[nodiscard]] inline Finish finish_of(const Call& call) {
  if (!reduces(call.collective)) return Finish::none;
  if (call.op == ReduceOp::premul_sum) return Finish::scale_contributions;
  if (call.op != ReduceOp::avg) return Finish::none;
  return is_integer(call.type) ? Finish::divide_result : Finish::scale_contributions;
}

// The begin of a checksum of what ranks must agree on, and the checksum with a further word.
inline constexpr std::uint32_t kNoDigest = 2166136261U;
[[nodiscard]] constexpr std::uint32_t folded(std::uint32_t digest, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte, word >>= 8) digest = (digest ^ static_cast<std::uint32_t>(word & 0xff)) * 16777619U;
  return digest;
}

}  // namespace seto

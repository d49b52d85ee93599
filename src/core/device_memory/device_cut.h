#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/bound_program.h"

namespace seto {

// The rules by which a call on device memory is cut and lends its messages: pure, so that predictions take the same
// (src/report/device).

// A call of which the plan is chosen.
struct PlannedCall {
  const Algorithm& algorithm;
  const Shape& shape;
  const Tiers& tiers;
  DataType type = DataType::float32;
  std::uint64_t longest = 0;  // elements of the longest chunk
};

// The messages that stay in the buffers of their senders (decision 36).
struct LentMessages {
  std::vector<std::vector<LentChannel>> channels;  // by rank; empty: none is lent
  bool all = false;                                // no channel has slots
};
// `lowered`: the programs of all ranks, whose buffers lie as `in_place` says. The answer does not depend on where they lie, which
// the other ranks do not know. Peers must be able to read all buffers.
LentMessages lent_messages(const PlannedCall& call, std::span<const Program> lowered, std::span<const InPlace> in_place);

// How a call is cut first, and again where its slots do not fit into a workspace.
struct DeviceSlice {
  std::uint64_t elements = 1;
  std::uint32_t blocks = 1;
};
struct SliceRequest {
  std::uint64_t longest_bytes = 0;  // of a chunk
  std::uint64_t slice_bytes = 0;    // that choice, or a setting, wants
  std::size_t element = 1;          // bytes
  std::uint64_t grain = 1;          // elements of which slices are multiples
  std::size_t capacity = 0;         // bytes of slots and flags
  std::uint32_t most_blocks = 1;
  bool lends_all = false;
};
// Where all messages are lent, choice does not know how long slices may be.
std::uint64_t lent_slice_bytes(std::uint64_t longest_bytes);
DeviceSlice first_slice(const SliceRequest& request);
// The next one to try, if `needed` bytes were too many. False: there is no smaller one.
bool shorten(DeviceSlice& slice, const SliceRequest& request, std::size_t needed);
inline constexpr int kTriesToFit = 12;

}  // namespace seto

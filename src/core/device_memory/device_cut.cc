#include "src/core/device_memory/device_cut.h"

#include <algorithm>

#include "src/engine/device/device_lending.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

constexpr std::uint64_t kBytesOfBlock = 16 << 10;  // of a part: a call gets a further block for so many
// Messages from this size on are lent: not measured on a GPU, as long as those of threads (decision 7).
constexpr std::uint64_t kLeastLent = 16 << 10;
// Lent messages need no slots, so their slices only let a rank begin with one while another rank makes the next.
constexpr std::uint64_t kLentSlices = 8;
constexpr std::uint64_t kShortestLentSlice = 512 << 10;
constexpr std::uint64_t kLongestLentSlice = 8 << 20;  // a pass is over soon after a kernel was told to stop

// The collective has a form in which the input of this rank lies in its output, or its output in its input.
bool may_be_in_place(const Shape& shape, Rank rank) {
  if (shape.collective == Collective::gather || shape.collective == Collective::scatter) return rank == shape.root;
  return shape.collective != Collective::all_to_all && shape.collective != Collective::barrier;
}

}  // namespace

LentMessages lent_messages(const PlannedCall& call, std::span<const Program> lowered, std::span<const InPlace> in_place) {
  LentMessages lent;
  if (call.longest * size_of(call.type) < kLeastLent) return lent;
  std::vector<Program> others;  // with the buffers where `lowered` does not have them
  others.reserve(lowered.size());
  std::vector<LendingRank> variants;
  for (std::size_t rank = 0; rank < lowered.size(); ++rank) {
    const InPlace other = in_place[rank] == InPlace::yes ? InPlace::no : InPlace::yes;
    const Program plain = build_program(call.algorithm, call.shape, call.tiers, static_cast<Rank>(rank), other);
    others.push_back(lower(plain, call.shape, other, rules_for(call.type)));
    if (in_place[rank] == InPlace::yes)
      variants.push_back({&others[rank], &lowered[rank]});
    else
      variants.push_back({&lowered[rank], may_be_in_place(call.shape, static_cast<Rank>(rank)) ? &others[rank] : nullptr});
  }
  const DeviceLending lending(variants, call.shape);
  if (!lending.any()) return lent;
  lent.all = true;
  for (std::size_t rank = 0; rank < lowered.size(); ++rank) {
    lent.channels.push_back(lending.channels_of(static_cast<Rank>(rank), in_place[rank]));
    for (const LentChannel& channel : lent.channels.back()) lent.all = lent.all && channel.is_lent;
  }
  return lent;
}

std::uint64_t lent_slice_bytes(std::uint64_t longest_bytes) {
  return std::clamp(longest_bytes / kLentSlices, kShortestLentSlice, kLongestLentSlice);
}

DeviceSlice first_slice(const SliceRequest& request) {
  const std::uint64_t wanted =
      request.lends_all ? request.slice_bytes : std::min<std::uint64_t>(request.slice_bytes, request.capacity);
  const std::uint64_t longest = std::max<std::uint64_t>(1, request.longest_bytes / request.element);
  return {std::min(std::max<std::uint64_t>(request.grain, wanted / request.element), longest),
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(request.longest_bytes / kBytesOfBlock, 1, request.most_blocks))};
}

bool shorten(DeviceSlice& slice, const SliceRequest& request, std::size_t needed) {
  const double ratio = static_cast<double>(request.capacity) / static_cast<double>(needed);
  if (slice.elements > request.grain * slice.blocks) {
    slice.elements =
        std::max<std::uint64_t>(request.grain, static_cast<std::uint64_t>(static_cast<double>(slice.elements) * ratio * 0.95));
    return true;
  }
  if (slice.blocks == 1) return false;
  slice.blocks /= 2;
  return true;
}

}  // namespace seto

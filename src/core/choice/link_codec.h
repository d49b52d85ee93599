#pragma once

#include <string>

#include "src/core/choice/planner.h"

namespace seto {

// The smallest buffer for which a codec is permitted without being asked for.
inline constexpr std::uint64_t kLeastCodedBytes = 64 << 10;
// Sites that were found, not stated, are coded from this round trip on: 5 ms are 500 km of fibre at least.
inline constexpr double kCodedRoundTripSeconds = 5e-3;
// The log warns of found sites up to this multiple of the limit: round trips vary by that much from run to run.
inline constexpr double kNearTheLimit = 1.3;

// Permits fp16 on the tier of sites, for sums and averages of float32 that cross a far link whose cost was measured or stated, if
// the sites are stated or far enough apart. A call or a setting that names a codec, or `none`, is not asked here. Like every
// codec it is a permission: where the exact numbers are as fast, they are sent.
void allow_link_codec(Question& question, ReduceOp op, const Tiers& tiers, const CostModel& costs);

// The codec of that call is one that allow_link_codec permitted, and it is used.
[[nodiscard]] bool uses_link_codec(const Question& question, const Choice& choice);

// "sums of float32 of 64 KiB or more travel in fp16 between sites, ...": for the log.
std::string link_codec_text(const CostModel& costs);

}  // namespace seto

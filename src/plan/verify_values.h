#pragma once

#include "src/plan/channel_index.h"
#include "src/plan/verify.h"

namespace seto {

// The parts of verify(), each over a plan whose structure is sound and whose channels are joined.

// Runs the plan once on symbols, checks order between all conflicting accesses, stages and the promised outputs.
Result<Outcome> verify_values(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request);

// Runs it on counters alone, over enough slices to fill every pipeline, with bounded channels.
Status verify_progress(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request);

}  // namespace seto

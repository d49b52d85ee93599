#pragma once

#include "src/plan/channel_index.h"
#include "src/plan/verify.h"

namespace seto {

// The parts of verify(). Each takes a plan whose structure was checked and whose channels are joined.

// Runs the plan once on symbols, and checks the order of all conflicting accesses, the stages and the outputs.
Result<Outcome> verify_values(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request);

// Runs the plan on counters alone, with bounded channels, over enough slices to fill every pipeline.
Status verify_progress(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request);

}  // namespace seto

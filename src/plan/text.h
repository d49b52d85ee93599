#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/plan/plan.h"

// A plan as text, for people, tools and tests:
//
//   seto plan 1
//   name ring
//   shape all_reduce ranks 2 root 0 pieces 2 finish scale_contributions
//
//   program 0 scratch 1 fan 1
//   channel 0 from 1 to 0 group 0 port 0 chunks 0+1 stage 0
//   channel 1 from 0 to 1 group 0 port 0 chunks 1+1 stage 0
//   channel 2 from 0 to 1 group 0 port 1 chunks 0+1 stage 1
//   channel 3 from 1 to 0 group 0 port 1 chunks 1+1 stage 1
//   lane 0
//     copy chunks 1+1 stage 0 order 4: scaled input 1 -> channel 1
//   lane 1
//     reduce finishes chunks 0+1 stage 1 order 2: channel 0, scaled input 0 -> output 0, channel 2, scratch 0
//   lane 2
//     copy chunks 1+1 stage 2 order 6: channel 3 -> output 1 after 0:1 1:1
//
// `chunks 4+2` means two logical chunks from 4; `after 0:1` waits for one step of lane 0. A plan with a codec states `codec N
// tiers N` at the end of its shape; then channels may end in `coded`, and steps state `rounds` after `finishes`. Blank lines and
// lines that begin with # are ignored.
namespace seto {

inline constexpr std::size_t kPlanTextLimit = std::size_t{1} << 28;  // bytes
inline constexpr std::uint64_t kPlanTextRanks = 1 << 16;
inline constexpr std::uint64_t kPlanTextChunks = 1 << 24;  // limit of logical chunks, and of scratch chunks of one rank
inline constexpr std::uint64_t kPlanTextStages = 1 << 16;

// Pools (operands, dependencies, receivers) are written where they are used. A program that holds them in the order of its steps,
// as builder and lowering make it, is read back equal.
std::string to_text(const Plan& plan);

// Every index of the result is within its bounds, but the plan need not be correct: verify() decides that. It allocates at most a
// constant times the length of the text.
Result<Plan> plan_from_text(std::string_view text);

}  // namespace seto

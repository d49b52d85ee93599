#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/plan/plan.h"

namespace seto {

// The channels of all programs of a plan, joined: which numbers mean the same channel on different ranks.
struct JoinedChannel {
  struct End {
    Rank rank;
    std::uint32_t step;  // in that rank's Program::steps
  };
  End sender{-1, 0};
  std::vector<End> receivers;
};

struct ChannelIndex {
  std::vector<JoinedChannel> channels;
  std::vector<std::vector<std::uint32_t>> of_program;  // [rank][channel of that program] -> index in `channels`
};

// Checks each program for itself (indices, operands of each verb, one step for each channel end) and joins the ends.
Status check_structure(const Plan& plan);
Result<ChannelIndex> join_channels(const Plan& plan);

// Where step `index` of a program lies: for messages.
std::uint32_t lane_of(const Program& program, std::uint32_t step);

}  // namespace seto

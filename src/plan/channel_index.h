#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/plan/plan.h"

namespace seto {

// The channels of all programs of a plan, joined: each entry lists the ends of one channel on all its ranks.
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

// Checks each program alone (indices, operands of each verb, one step for each channel end) and joins the ends.
Status check_structure(const Plan& plan);
Result<ChannelIndex> join_channels(const Plan& plan);

// The lane of step `index` of a program, for error texts.
std::uint32_t lane_of(const Program& program, std::uint32_t step);

}  // namespace seto

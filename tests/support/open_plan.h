#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/plan.h"

// A program without pools, for tests that edit it.
namespace seto::support {

struct OpenStep {
  Step step;
  std::vector<Operand> sources;
  std::vector<Operand> targets;
  std::vector<Dependency> dependencies;
};

struct OpenChannel {
  Channel channel;
  std::vector<Rank> receivers;
};

struct OpenProgram {
  Rank rank = 0;
  std::uint32_t scratch_chunks = 0;
  std::uint32_t fan = 0;
  std::vector<std::vector<OpenStep>> lanes;
  std::vector<OpenChannel> channels;
};

OpenProgram opened(const Program& program);
Program closed(const OpenProgram& program);

// Removes a step. Steps that waited for later steps of its lane still wait for the same ones. The lane stays, possibly empty.
void erase_step(OpenProgram& program, std::uint32_t lane, std::uint32_t position);
// Removes a lane without steps.
void erase_lane(OpenProgram& program, std::uint32_t lane);
// Removes a channel that no step uses any more.
void erase_channel(OpenProgram& program, std::uint32_t channel);

}  // namespace seto::support

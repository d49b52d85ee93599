#include "tests/support/open_plan.h"

#include <algorithm>

namespace seto::support {
namespace {

template <class ConnectRequest>
void for_each_step(OpenProgram& program, ConnectRequest&& request) {
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane) request(step);
}

}  // namespace

OpenProgram opened(const Program& program) {
  OpenProgram open{program.rank, program.scratch_chunks, program.fan, {}, {}};
  for (const Lane& lane : program.lanes) {
    open.lanes.emplace_back();
    for (const Step& step : program.steps_of(lane)) {
      const auto sources = program.sources(step);
      const auto targets = program.targets(step);
      const auto dependencies = program.dependencies_of(step);
      open.lanes.back().push_back(
          {step, {sources.begin(), sources.end()}, {targets.begin(), targets.end()}, {dependencies.begin(), dependencies.end()}});
    }
  }
  for (const Channel& channel : program.channels) {
    const auto receivers = program.receivers_of(channel);
    open.channels.push_back({channel, {receivers.begin(), receivers.end()}});
  }
  return open;
}

Program closed(const OpenProgram& open) {
  Program program;
  program.rank = open.rank;
  program.scratch_chunks = open.scratch_chunks;
  program.fan = open.fan;
  for (const auto& lane : open.lanes) {
    program.lanes.push_back({static_cast<std::uint32_t>(program.steps.size()), static_cast<std::uint32_t>(lane.size())});
    for (const OpenStep& from : lane) {
      Step step = from.step;
      step.first_operand = static_cast<std::uint32_t>(program.operands.size());
      step.source_count = static_cast<std::uint16_t>(from.sources.size());
      step.target_count = static_cast<std::uint16_t>(from.targets.size());
      program.operands.insert(program.operands.end(), from.sources.begin(), from.sources.end());
      program.operands.insert(program.operands.end(), from.targets.begin(), from.targets.end());
      step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
      step.dependency_count = static_cast<std::uint32_t>(from.dependencies.size());
      program.dependencies.insert(program.dependencies.end(), from.dependencies.begin(), from.dependencies.end());
      program.steps.push_back(step);
    }
  }
  for (const OpenChannel& from : open.channels) {
    Channel channel = from.channel;
    channel.first_receiver = static_cast<std::uint32_t>(program.receivers.size());
    channel.receiver_count = static_cast<std::uint32_t>(from.receivers.size());
    program.receivers.insert(program.receivers.end(), from.receivers.begin(), from.receivers.end());
    program.channels.push_back(channel);
  }
  return program;
}

void erase_step(OpenProgram& program, std::uint32_t lane, std::uint32_t position) {
  auto& steps = program.lanes[lane];
  steps.erase(steps.begin() + position);
  for_each_step(program, [&](OpenStep& step) {
    for (Dependency& dependency : step.dependencies)
      if (dependency.lane == lane && dependency.steps > position) --dependency.steps;
    std::erase_if(step.dependencies, [](const Dependency& dependency) { return dependency.steps == 0; });
  });
}

void erase_lane(OpenProgram& program, std::uint32_t lane) {
  program.lanes.erase(program.lanes.begin() + lane);
  for_each_step(program, [&](OpenStep& step) {
    std::erase_if(step.dependencies, [&](const Dependency& dependency) { return dependency.lane == lane; });
    for (Dependency& dependency : step.dependencies)
      if (dependency.lane > lane) --dependency.lane;
  });
}

void erase_channel(OpenProgram& program, std::uint32_t channel) {
  program.channels.erase(program.channels.begin() + channel);
  for_each_step(program, [&](OpenStep& step) {
    for (auto* operands : {&step.sources, &step.targets})
      for (Operand& operand : *operands)
        if (operand.space == Space::channel && operand.index > channel) --operand.index;
  });
}

}  // namespace seto::support

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/mutate.h"
#include "tests/support/open_plan.h"

// Finds the place that a mutation damages: each choice is one draw from the existing places.
namespace seto::support {

using Random = std::mt19937_64;
using Programs = std::vector<OpenProgram>;

inline std::size_t pick(Random& random, std::size_t count) { return random() % count; }
inline std::uint32_t nudged(std::uint32_t value, Random& random) { return pick(random, 2) == 0 ? value + 1 : value - 1; }

template <bool (*Damage)(OpenProgram&, Random&)>
bool on_one(Plan& plan, Random& random) {
  Program& program = plan.programs[pick(random, plan.programs.size())];
  OpenProgram open = opened(program);
  if (!Damage(open, random)) return false;
  program = closed(open);
  return true;
}

template <bool (*Damage)(Programs&, Random&)>
bool on_all(Plan& plan, Random& random) {
  Programs open;
  for (const Program& program : plan.programs) open.push_back(opened(program));
  if (!Damage(open, random)) return false;
  for (std::size_t i = 0; i < open.size(); ++i) plan.programs[i] = closed(open[i]);
  return true;
}

struct Site {
  std::uint32_t lane;
  std::uint32_t position;
};

template <class Wanted>
std::optional<Site> find_site(const OpenProgram& program, Random& random, Wanted&& wanted) {
  std::vector<Site> sites;
  for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
    for (std::uint32_t i = 0; i < program.lanes[lane].size(); ++i)
      if (wanted(program.lanes[lane][i])) sites.push_back({lane, i});
  if (sites.empty()) return std::nullopt;
  return sites[pick(random, sites.size())];
}

template <class Wanted>
OpenStep* find_step(OpenProgram& program, Random& random, Wanted&& wanted) {
  const auto site = find_site(program, random, wanted);
  return site ? &program.lanes[site->lane][site->position] : nullptr;
}

inline OpenStep* any_step(OpenProgram& program, Random& random) {
  return find_step(program, random, [](const OpenStep&) { return true; });
}

template <class Wanted>
Operand* find_operand(OpenProgram& program, Random& random, Wanted&& wanted) {
  std::vector<Operand*> found;
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      for (auto* operands : {&step.sources, &step.targets})
        for (Operand& operand : *operands)
          if (wanted(operand)) found.push_back(&operand);
  return found.empty() ? nullptr : found[pick(random, found.size())];
}

inline bool uses(const OpenStep& step, std::uint32_t channel) {
  for (const auto* operands : {&step.sources, &step.targets})
    for (const Operand& operand : *operands)
      if (operand.space == Space::channel && operand.index == channel) return true;
  return false;
}

struct End {  // one end of a channel that several programs describe
  OpenProgram* program;
  std::uint32_t channel;
  OpenStep* step;
};

inline bool same_channel(const OpenChannel& a, const OpenChannel& b) {
  return a.channel.sender == b.channel.sender && a.channel.group == b.channel.group && a.channel.port == b.channel.port &&
         a.receivers == b.receivers;
}

// All ends of a random channel; the first belongs to the chosen program.
inline std::vector<End> find_message(Programs& programs, Random& random) {
  const std::size_t first = pick(random, programs.size());
  if (programs[first].channels.empty()) return {};
  const OpenChannel wanted = programs[first].channels[pick(random, programs[first].channels.size())];
  std::vector<End> ends;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    OpenProgram& program = programs[(first + i) % programs.size()];
    for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
      if (!same_channel(program.channels[c], wanted)) continue;
      OpenStep* user = find_step(program, random, [&](const OpenStep& step) { return uses(step, c); });
      if (user != nullptr) ends.push_back({&program, c, user});
    }
  }
  return ends;
}

// Mutations of steps, of their order, and of senders and receivers.
std::span<const Mutation> order_mutations();

}  // namespace seto::support

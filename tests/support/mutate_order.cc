#include <array>
#include <utility>

#include "tests/support/mutate_sites.h"

namespace seto::support {
namespace {

// ---- steps and their order ----

bool drop_step(OpenProgram& program, Random& random) {
  const auto site = find_site(program, random, [](const OpenStep&) { return true; });
  if (!site) return false;
  erase_step(program, site->lane, site->position);
  if (program.lanes[site->lane].empty() && pick(random, 2) == 0) erase_lane(program, site->lane);
  return true;
}

bool drop_local_step(OpenProgram& program, Random& random) {
  const auto site = find_site(program, random, [](const OpenStep& step) {
    const auto local = [](const Operand& o) { return o.space != Space::channel; };
    return std::all_of(step.sources.begin(), step.sources.end(), local) &&
           std::all_of(step.targets.begin(), step.targets.end(), local);
  });
  if (!site) return false;
  erase_step(program, site->lane, site->position);
  if (program.lanes[site->lane].empty()) erase_lane(program, site->lane);
  return true;
}

void erase_user(OpenProgram& program, std::uint32_t channel) {
  for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
    for (std::uint32_t i = 0; i < program.lanes[lane].size(); ++i) {
      OpenStep& step = program.lanes[lane][i];
      if (!uses(step, channel)) continue;
      const auto is_end = [&](const Operand& o) { return o.space == Space::channel && o.index == channel; };
      std::erase_if(step.sources, is_end);
      std::erase_if(step.targets, is_end);
      if (!step.sources.empty() && !step.targets.empty()) return;
      erase_step(program, lane, i);
      if (program.lanes[lane].empty()) erase_lane(program, lane);
      return;
    }
}

// Removes a message at every end. The other work of a fused step stays.
bool drop_message(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    erase_user(*end.program, end.channel);
    erase_channel(*end.program, end.channel);
  }
  return !ends.empty();
}

bool swap_in_lane(OpenProgram& program, Random& random) {
  std::vector<std::uint32_t> lanes;
  for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
    if (program.lanes[lane].size() > 1) lanes.push_back(lane);
  if (lanes.empty()) return false;
  auto& lane = program.lanes[lanes[pick(random, lanes.size())]];
  const std::size_t at = pick(random, lane.size() - 1);
  std::swap(lane[at], lane[at + 1]);
  return true;
}

void rename_lanes(OpenProgram& program, std::uint32_t a, std::uint32_t b) {
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      for (Dependency& dependency : step.dependencies) {
        if (dependency.lane == a) {
          dependency.lane = b;
        } else if (dependency.lane == b) {
          dependency.lane = a;
        }
      }
}

// Two lanes swap their positions in the static order. Dependencies keep their meaning.
bool swap_lanes(OpenProgram& program, Random& random) {
  if (program.lanes.size() < 2) return false;
  const std::size_t a = pick(random, program.lanes.size());
  const std::size_t b = pick(random, 2) == 0 ? (a + 1) % program.lanes.size() : pick(random, program.lanes.size());
  std::swap(program.lanes[a], program.lanes[b]);
  rename_lanes(program, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
  return a != b;
}

bool swap_lanes_alone(OpenProgram& program, Random& random) {
  if (program.lanes.size() < 2) return false;
  const std::size_t a = pick(random, program.lanes.size());
  std::swap(program.lanes[a], program.lanes[(a + 1) % program.lanes.size()]);
  return true;
}

// The first lane also does the steps of the second, before, after or between its own.
bool merge_lanes(OpenProgram& program, Random& random) {
  if (program.lanes.size() < 2) return false;
  const auto a = static_cast<std::uint32_t>(pick(random, program.lanes.size()));
  const auto b = static_cast<std::uint32_t>((a + 1 + pick(random, program.lanes.size() - 1)) % program.lanes.size());
  std::vector<OpenStep> merged;
  std::array<std::vector<std::uint32_t>, 2> position;  // new position of each old step, + 1
  std::array<std::size_t, 2> next{};
  const std::array<const std::vector<OpenStep>*, 2> from{&program.lanes[a], &program.lanes[b]};
  const std::size_t taste = pick(random, 3);
  while (next[0] < from[0]->size() || next[1] < from[1]->size()) {
    std::size_t side = taste == 2 ? pick(random, 2) : taste;
    if (next[side] == from[side]->size()) side = 1 - side;
    merged.push_back((*from[side])[next[side]++]);
    position[side].push_back(static_cast<std::uint32_t>(merged.size()));
  }
  program.lanes[a] = std::move(merged);
  program.lanes[b].clear();
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      for (Dependency& dependency : step.dependencies)
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          if (dependency.steps > 0 && dependency.lane == (side == 0 ? a : b)) {
            const std::uint32_t steps = dependency.steps - 1;
            if (steps >= position[side].size()) break;
            dependency = {a, position[side][steps]};
            break;
          }
  erase_lane(program, b);
  return true;
}

// Merges lanes on two ranks at once: if their orders conflict, both ranks wait.
bool merge_lanes_twice(Programs& programs, Random& random) {
  if (programs.size() < 2) return false;
  const std::size_t a = pick(random, programs.size());
  const std::size_t b = (a + 1 + pick(random, programs.size() - 1)) % programs.size();
  return merge_lanes(programs[a], random) && merge_lanes(programs[b], random);
}

// The second half of a lane becomes a separate lane, so the order between the halves is lost.
bool split_lane(OpenProgram& program, Random& random) {
  const auto at = static_cast<std::uint32_t>(pick(random, std::max<std::size_t>(1, program.lanes.size())));
  if (program.lanes.empty() || program.lanes[at].size() < 2) return false;
  const auto cut = static_cast<std::uint32_t>(1 + pick(random, program.lanes[at].size() - 1));
  const auto added = static_cast<std::uint32_t>(program.lanes.size());
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      for (Dependency& dependency : step.dependencies)
        if (dependency.lane == at && dependency.steps > cut) dependency = {added, dependency.steps - cut};
  std::vector<OpenStep> rest(program.lanes[at].begin() + cut, program.lanes[at].end());
  program.lanes[at].resize(cut);
  program.lanes.push_back(std::move(rest));
  return true;
}

// ---- senders and receivers ----

bool wrong_root(Plan& plan, Random& random) {
  const Collective what = plan.shape.collective;
  const bool rooted =
      what == Collective::broadcast || what == Collective::reduce || what == Collective::gather || what == Collective::scatter;
  if (plan.shape.ranks < 2 || !rooted) return false;
  plan.shape.root =
      (plan.shape.root + 1 + static_cast<Rank>(pick(random, static_cast<std::size_t>(plan.shape.ranks) - 1))) % plan.shape.ranks;
  return true;
}

bool wrong_receiver(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  if (ends.empty()) return false;
  const auto wrong = static_cast<Rank>(pick(random, programs.size()));
  const bool everywhere = pick(random, 2) == 0;
  for (const End& end : ends) {
    auto& receivers = end.program->channels[end.channel].receivers;
    if (everywhere || &end == &ends.front()) receivers.back() = wrong;
  }
  return true;
}

bool wrong_sender(OpenProgram& program, Random& random) {
  if (program.channels.empty()) return false;
  OpenChannel& channel = program.channels[pick(random, program.channels.size())];
  channel.channel.sender += pick(random, 2) == 0 ? 1 : -1;
  return true;
}

// A whole message goes to another rank, which stores it as the right receiver would have.
bool other_receiver(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  if (ends.size() != 2 || programs.size() < 3) return false;
  const End& sender = ends[ends[0].program->channels[ends[0].channel].channel.sender == ends[0].program->rank ? 0 : 1];
  const End& receiver = &sender == &ends[0] ? ends[1] : ends[0];
  const auto wrong = static_cast<Rank>((receiver.program->rank + 1) % static_cast<Rank>(programs.size()));
  if (wrong == sender.program->rank) return false;
  OpenStep moved = *receiver.step;
  moved.dependencies.clear();
  OpenChannel channel = receiver.program->channels[receiver.channel];
  channel.receivers = {wrong};
  channel.channel.port = 99;
  sender.program->channels[sender.channel] = channel;
  erase_user(*receiver.program, receiver.channel);
  erase_channel(*receiver.program, receiver.channel);
  OpenProgram& into = programs[static_cast<std::size_t>(wrong)];
  for (Operand& operand : moved.sources)
    if (operand.space == Space::channel) operand.index = static_cast<std::uint32_t>(into.channels.size());
  into.channels.push_back(channel);
  into.lanes.push_back({moved});
  return true;
}

// Two receives, or two sends, of one rank swap their channels.
bool swap_channels(OpenProgram& program, Random& random) {
  Operand* first = find_operand(program, random, [](const Operand& o) { return o.space == Space::channel; });
  if (first == nullptr) return false;
  const Channel& channel = program.channels[first->index].channel;
  Operand* second = find_operand(program, random, [&](const Operand& o) {
    if (o.space != Space::channel || o.index == first->index) return false;
    const Channel& other = program.channels[o.index].channel;
    return (other.sender == program.rank) == (channel.sender == program.rank) && other.count == channel.count &&
           (other.chunk == channel.chunk || pick(random, 4) == 0);
  });
  if (second == nullptr) return false;
  std::swap(first->index, second->index);
  return true;
}

bool swap_ports(OpenProgram& program, Random& random) {
  if (program.channels.size() < 2) return false;
  const std::size_t a = pick(random, program.channels.size());
  const std::size_t b = pick(random, program.channels.size());
  std::swap(program.channels[a].channel.port, program.channels[b].channel.port);
  return program.channels[a].channel.port != program.channels[b].channel.port;
}

// One receiver of a multicast receives the message twice, another never.
bool steal_message(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  if (ends.size() < 3) return false;
  std::vector<const End*> receivers;
  for (const End& end : ends)
    if (end.program->channels[end.channel].channel.sender != end.program->rank) receivers.push_back(&end);
  const End& thief = *receivers[pick(random, receivers.size())];
  const End& robbed = *receivers[pick(random, receivers.size())];
  if (thief.program == robbed.program) return false;
  OpenStep again = *thief.step;
  const auto channel = static_cast<std::uint32_t>(thief.program->channels.size());
  for (Operand& operand : again.sources)
    if (operand.space == Space::channel && operand.index == thief.channel) operand.index = channel;
  thief.program->channels.push_back(thief.program->channels[thief.channel]);
  again.dependencies.clear();
  thief.program->lanes.push_back({again});
  erase_user(*robbed.program, robbed.channel);
  erase_channel(*robbed.program, robbed.channel);
  return true;
}

constexpr std::array kMutations = {
    Mutation{"step dropped", on_one<drop_step>},
    Mutation{"local step dropped", on_one<drop_local_step>},
    Mutation{"message dropped", on_all<drop_message>},
    Mutation{"steps of a lane swapped", on_one<swap_in_lane>},
    Mutation{"lanes swapped", on_one<swap_lanes>},
    Mutation{"lanes swapped, not renamed", on_one<swap_lanes_alone>},
    Mutation{"lanes merged", on_one<merge_lanes>},
    Mutation{"lanes merged on two ranks", on_all<merge_lanes_twice>},
    Mutation{"lane split", on_one<split_lane>},
    Mutation{"wrong root", wrong_root},
    Mutation{"wrong receiver", on_all<wrong_receiver>},
    Mutation{"wrong sender", on_one<wrong_sender>},
    Mutation{"message to another rank", on_all<other_receiver>},
    Mutation{"channels swapped", on_one<swap_channels>},
    Mutation{"ports swapped", on_one<swap_ports>},
    Mutation{"multicast stolen", on_all<steal_message>},
};

}  // namespace

std::span<const Mutation> order_mutations() { return kMutations; }

}  // namespace seto::support

#include "tests/support/mutate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/open_plan.h"

namespace seto::support {
namespace {

using Random = std::mt19937_64;
using Programs = std::vector<OpenProgram>;

std::size_t pick(Random& random, std::size_t count) { return random() % count; }
std::uint32_t nudged(std::uint32_t value, Random& random) { return pick(random, 2) == 0 ? value + 1 : value - 1; }

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

OpenStep* any_step(OpenProgram& program, Random& random) {
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

bool uses(const OpenStep& step, std::uint32_t channel) {
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

bool same_channel(const OpenChannel& a, const OpenChannel& b) {
  return a.channel.sender == b.channel.sender && a.channel.group == b.channel.group && a.channel.port == b.channel.port &&
         a.receivers == b.receivers;
}

// All ends of a random channel; the first is of the program that was chosen.
std::vector<End> find_message(Programs& programs, Random& random) {
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

// ---- chunks ----------------------------------------------------------------------------------------------------------------------

bool operand_chunk(OpenProgram& program, Random& random) {
  Operand* operand = find_operand(program, random, [](const Operand& o) { return o.space != Space::channel; });
  if (operand != nullptr) operand->index = nudged(operand->index, random);
  return operand != nullptr;
}

bool step_chunk(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) step->step.chunk = nudged(step->step.chunk, random);
  return step != nullptr;
}

// A step that works with scratch alone says that its chunks are others: only their length is wrong.
bool scratch_step_chunk(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, [](const OpenStep& s) {
    const auto is_scratch = [](const Operand& o) { return o.space == Space::scratch; };
    return std::all_of(s.sources.begin(), s.sources.end(), is_scratch) && std::all_of(s.targets.begin(), s.targets.end(), is_scratch);
  });
  if (step != nullptr) step->step.chunk = nudged(step->step.chunk, random);
  return step != nullptr;
}

bool count_of_step(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) step->step.count = nudged(step->step.count, random);
  return step != nullptr;
}

void shift_places(OpenStep& step, std::uint32_t by) {
  step.step.chunk += by;
  for (auto* operands : {&step.sources, &step.targets})
    for (Operand& operand : *operands)
      if (operand.space == Space::input || operand.space == Space::output) operand.index += by;
}

bool chunk_everywhere_in_step(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) shift_places(*step, nudged(0, random));
  return step != nullptr;
}

bool channel_chunk(OpenProgram& program, Random& random) {
  if (program.channels.empty()) return false;
  Channel& channel = program.channels[pick(random, program.channels.size())].channel;
  channel.chunk = nudged(channel.chunk, random);
  return true;
}

// Both ends agree to move the next chunk instead.
bool message_chunk(Programs& programs, Random& random) {
  const std::uint32_t by = nudged(0, random);
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    end.program->channels[end.channel].channel.chunk += by;
    shift_places(*end.step, by);
  }
  return !ends.empty();
}

// The receiver alone believes that the message is another chunk, and stores it where that belongs.
bool receive_as_other_chunk(Programs& programs, Random& random) {
  const std::uint32_t by = nudged(0, random);
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    const bool sends = end.program->channels[end.channel].channel.sender == end.program->rank;
    end.program->channels[end.channel].channel.chunk += by;
    if (sends) {
      end.step->step.chunk += by;
    } else {
      shift_places(*end.step, by);
    }
  }
  return !ends.empty();
}

// ---- dependencies ---------------------------------------------------------------------------------------------------------------

bool waits(const OpenStep& step) { return !step.dependencies.empty(); }

bool drop_dependency(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, waits);
  if (step != nullptr) step->dependencies.erase(step->dependencies.begin() + static_cast<std::ptrdiff_t>(pick(random, step->dependencies.size())));
  return step != nullptr;
}

bool drop_dependencies(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, waits);
  if (step != nullptr) step->dependencies.clear();
  return step != nullptr;
}

bool weaken_dependency(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, waits);
  if (step != nullptr) --step->dependencies[pick(random, step->dependencies.size())].steps;
  return step != nullptr;
}

bool other_dependency(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, waits);
  if (step == nullptr) return false;
  const auto lane = static_cast<std::uint32_t>(pick(random, program.lanes.size()));
  step->dependencies[pick(random, step->dependencies.size())] = {lane, static_cast<std::uint32_t>(program.lanes[lane].size())};
  return true;
}

// ---- steps and their order ------------------------------------------------------------------------------------------------------

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
    return std::all_of(step.sources.begin(), step.sources.end(), local) && std::all_of(step.targets.begin(), step.targets.end(), local);
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

// The message is gone at every end, and what else a fused step does stays.
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

// Two lanes change places in the static order; dependencies still mean what they meant.
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

// The first lane also does what the second did, before, after or between its own steps.
bool merge_lanes(OpenProgram& program, Random& random) {
  if (program.lanes.size() < 2) return false;
  const auto a = static_cast<std::uint32_t>(pick(random, program.lanes.size()));
  const auto b = static_cast<std::uint32_t>((a + 1 + pick(random, program.lanes.size() - 1)) % program.lanes.size());
  std::vector<OpenStep> merged;
  std::array<std::vector<std::uint32_t>, 2> position;  // of each old step, + 1
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
        for (const std::size_t side : {0, 1})
          if (dependency.steps > 0 && dependency.lane == (side == 0 ? a : b)) {
            const std::uint32_t steps = dependency.steps - 1;
            if (steps >= position[side].size()) break;
            dependency = {a, position[side][steps]};
            break;
          }
  erase_lane(program, b);
  return true;
}

// Lanes merged on two ranks at once: where their orders cross, both wait.
bool merge_lanes_twice(Programs& programs, Random& random) {
  if (programs.size() < 2) return false;
  const std::size_t a = pick(random, programs.size());
  const std::size_t b = (a + 1 + pick(random, programs.size() - 1)) % programs.size();
  return merge_lanes(programs[a], random) && merge_lanes(programs[b], random);
}

// The second half of a lane becomes a lane of its own: the order between the halves is lost.
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

// ---- who talks to whom ----------------------------------------------------------------------------------------------------------

bool wrong_root(Plan& plan, Random& random) {
  const Collective what = plan.shape.collective;
  const bool rooted = what == Collective::broadcast || what == Collective::reduce || what == Collective::gather || what == Collective::scatter;
  if (plan.shape.ranks < 2 || !rooted) return false;
  plan.shape.root = (plan.shape.root + 1 + static_cast<Rank>(pick(random, static_cast<std::size_t>(plan.shape.ranks) - 1))) % plan.shape.ranks;
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

// Two receives, or two sends, of one rank take one another's channel.
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

// One receiver of a multicast takes the message twice, another never.
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

// ---- stages ---------------------------------------------------------------------------------------------------------------------

bool stage_of_step(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) step->step.stage = static_cast<std::uint16_t>(nudged(step->step.stage, random));
  return step != nullptr;
}

bool stage_of_message(Programs& programs, Random& random) {
  const auto by = static_cast<std::uint16_t>(nudged(0, random));
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    end.program->channels[end.channel].channel.stage = static_cast<std::uint16_t>(end.program->channels[end.channel].channel.stage + by);
    end.step->step.stage = static_cast<std::uint16_t>(end.step->step.stage + by);
  }
  return !ends.empty();
}

// ---- values ---------------------------------------------------------------------------------------------------------------------

bool folds(const OpenStep& step) { return step.sources.size() > 1; }

bool swap_sources(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, folds);
  if (step == nullptr) return false;
  const std::size_t at = pick(random, step->sources.size() - 1);
  std::swap(step->sources[at], step->sources[at + 1]);
  return true;
}

bool duplicate_source(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, folds);
  if (step == nullptr) return false;
  const std::size_t from = pick(random, step->sources.size());
  const std::size_t to = pick(random, step->sources.size());
  step->sources[to] = step->sources[from];
  return from != to;
}

bool drop_source(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, folds);
  if (step != nullptr) step->sources.erase(step->sources.begin() + static_cast<std::ptrdiff_t>(pick(random, step->sources.size())));
  return step != nullptr;
}

bool drop_target(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, [](const OpenStep& s) { return s.targets.size() > 1; });
  if (step != nullptr) step->targets.erase(step->targets.begin() + static_cast<std::ptrdiff_t>(pick(random, step->targets.size())));
  return step != nullptr;
}

bool toggle_scaled(OpenProgram& program, Random& random) {
  Operand* operand = find_operand(program, random, [](const Operand&) { return true; });
  if (operand != nullptr) operand->scaled = !operand->scaled;
  return operand != nullptr;
}

bool drop_scaled(OpenProgram& program, Random& random) {
  Operand* operand = find_operand(program, random, [](const Operand& o) { return o.scaled; });
  if (operand != nullptr) operand->scaled = false;
  return operand != nullptr;
}

bool toggle_finishes(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) step->step.finishes = !step->step.finishes;
  return step != nullptr;
}

bool finishing(const OpenStep& step) { return step.step.finishes || step.step.verb == Verb::finish; }

// What is finished is a part of the sum: another step divides, on this rank or another.
bool move_finish(Programs& programs, Random& random) {
  OpenStep* from = find_step(programs[pick(random, programs.size())], random, finishing);
  OpenStep* to = any_step(programs[pick(random, programs.size())], random);
  if (from == nullptr || to == nullptr || finishing(*to)) return false;
  from->step.finishes = false;
  if (from->step.verb == Verb::finish) from->step.verb = Verb::copy;
  to->step.finishes = true;
  return true;
}

bool change_verb(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step == nullptr) return false;
  const auto verb = static_cast<Verb>(pick(random, 8));
  const bool changes = verb != step->step.verb;
  step->step.verb = verb;
  return changes;
}

// ---- places ---------------------------------------------------------------------------------------------------------------------

bool other_scratch(OpenProgram& program, Random& random) {
  Operand* operand = find_operand(program, random, [](const Operand& o) { return o.space == Space::scratch; });
  if (operand != nullptr) operand->index = static_cast<std::uint32_t>(pick(random, program.scratch_chunks));
  return operand != nullptr;
}

// Two places of scratch become one.
bool join_scratch(OpenProgram& program, Random& random) {
  if (program.scratch_chunks < 2) return false;
  const auto from = static_cast<std::uint32_t>(pick(random, program.scratch_chunks));
  const auto to = static_cast<std::uint32_t>((from + 1 + pick(random, program.scratch_chunks - 1)) % program.scratch_chunks);
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      for (auto* operands : {&step.sources, &step.targets})
        for (Operand& operand : *operands)
          if (operand.space == Space::scratch && operand.index == from) operand.index = to;
  return true;
}

bool other_space(OpenProgram& program, Random& random) {
  Operand* operand = find_operand(program, random, [](const Operand& o) { return o.space != Space::channel; });
  if (operand == nullptr) return false;
  operand->space = static_cast<Space>((static_cast<std::size_t>(operand->space) + 1 + pick(random, 2)) % 3);
  return true;
}

bool codec_of_message(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  for (const End& end : ends) end.program->channels[end.channel].channel.codec = 1;
  return !ends.empty();
}

bool codec_of_step(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step == nullptr) return false;
  const std::array verbs = {Verb::encode, Verb::decode, step->step.verb};
  step->step.verb = verbs[pick(random, verbs.size())];
  step->step.codec = static_cast<std::uint8_t>(pick(random, 2));
  return true;
}

constexpr std::array kMutations = {
    Mutation{"operand chunk +-1", on_one<operand_chunk>},
    Mutation{"step chunk +-1", on_one<step_chunk>},
    Mutation{"scratch step chunk +-1", on_one<scratch_step_chunk>},
    Mutation{"step count +-1", on_one<count_of_step>},
    Mutation{"step and places +-1", on_one<chunk_everywhere_in_step>},
    Mutation{"channel chunk +-1", on_one<channel_chunk>},
    Mutation{"message chunk +-1", on_all<message_chunk>},
    Mutation{"received as other chunk", on_all<receive_as_other_chunk>},
    Mutation{"dependency dropped", on_one<drop_dependency>},
    Mutation{"dependencies dropped", on_one<drop_dependencies>},
    Mutation{"dependency weakened", on_one<weaken_dependency>},
    Mutation{"dependency on another", on_one<other_dependency>},
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
    Mutation{"step stage +-1", on_one<stage_of_step>},
    Mutation{"message stage +-1", on_all<stage_of_message>},
    Mutation{"sources swapped", on_one<swap_sources>},
    Mutation{"source duplicated", on_one<duplicate_source>},
    Mutation{"source dropped", on_one<drop_source>},
    Mutation{"target dropped", on_one<drop_target>},
    Mutation{"scaled toggled", on_one<toggle_scaled>},
    Mutation{"scaled dropped", on_one<drop_scaled>},
    Mutation{"finishes toggled", on_one<toggle_finishes>},
    Mutation{"finish moved", on_all<move_finish>},
    Mutation{"verb changed", on_one<change_verb>},
    Mutation{"another scratch place", on_one<other_scratch>},
    Mutation{"scratch places joined", on_one<join_scratch>},
    Mutation{"another space", on_one<other_space>},
    Mutation{"message codec", on_all<codec_of_message>},
    Mutation{"step codec", on_one<codec_of_step>},
};

}  // namespace

std::span<const Mutation> mutations() { return kMutations; }

}  // namespace seto::support

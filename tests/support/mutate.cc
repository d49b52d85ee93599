#include "tests/support/mutate.h"

#include <array>

#include "tests/support/mutate_sites.h"

namespace seto::support {
namespace {

// ---- chunks ----

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

// A step that uses scratch alone names other chunks, so only its length is wrong.
bool scratch_step_chunk(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, [](const OpenStep& s) {
    const auto is_scratch = [](const Operand& o) { return o.space == Space::scratch; };
    return std::all_of(s.sources.begin(), s.sources.end(), is_scratch) &&
           std::all_of(s.targets.begin(), s.targets.end(), is_scratch);
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

// Only the receiver takes the message for another chunk, and stores it at the place of that chunk.
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

// ---- dependencies ----

bool waits(const OpenStep& step) { return !step.dependencies.empty(); }

bool drop_dependency(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, waits);
  if (step != nullptr)
    step->dependencies.erase(step->dependencies.begin() + static_cast<std::ptrdiff_t>(pick(random, step->dependencies.size())));
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

// ---- stages ----

bool stage_of_step(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step != nullptr) step->step.stage = static_cast<std::uint16_t>(nudged(step->step.stage, random));
  return step != nullptr;
}

bool stage_of_message(Programs& programs, Random& random) {
  const auto by = static_cast<std::uint16_t>(nudged(0, random));
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    end.program->channels[end.channel].channel.stage =
        static_cast<std::uint16_t>(end.program->channels[end.channel].channel.stage + by);
    end.step->step.stage = static_cast<std::uint16_t>(end.step->step.stage + by);
  }
  return !ends.empty();
}

// ---- values ----

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
  if (step != nullptr)
    step->sources.erase(step->sources.begin() + static_cast<std::ptrdiff_t>(pick(random, step->sources.size())));
  return step != nullptr;
}

bool drop_target(OpenProgram& program, Random& random) {
  OpenStep* step = find_step(program, random, [](const OpenStep& s) { return s.targets.size() > 1; });
  if (step != nullptr)
    step->targets.erase(step->targets.begin() + static_cast<std::ptrdiff_t>(pick(random, step->targets.size())));
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

// A part of the sum is finished: another step divides, on this rank or another.
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
  const auto verb = static_cast<Verb>(pick(random, 7));
  const bool changes = verb != step->step.verb;
  step->step.verb = verb;
  return changes;
}

// ---- places ----

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

bool coding_of_message(Programs& programs, Random& random) {
  const auto ends = find_message(programs, random);
  for (const End& end : ends) {
    Channel& channel = end.program->channels[end.channel].channel;
    channel.coded = !channel.coded;
  }
  return !ends.empty();
}

bool toggle_rounds(OpenProgram& program, Random& random) {
  OpenStep* step = any_step(program, random);
  if (step == nullptr) return false;
  if (step->step.verb == Verb::round)
    step->step.verb = Verb::copy;
  else
    step->step.rounds = !step->step.rounds;
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
    Mutation{"message coding", on_all<coding_of_message>},
    Mutation{"rounds toggled", on_one<toggle_rounds>},
};

}  // namespace

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all = [] {
    std::vector<Mutation> joined(kMutations.begin(), kMutations.end());
    joined.insert(joined.end(), order_mutations().begin(), order_mutations().end());
    return joined;
  }();
  return all;
}

}  // namespace seto::support

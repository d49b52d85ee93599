#include "src/plan/channel_index.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "src/plan/chunk_map.h"

namespace seto {
namespace {

// Sender, then the receiver (or -group of a multicast), then the port. Each end can derive it alone.
using Address = std::tuple<Rank, Rank, std::uint16_t>;

Address address_of(const Program& program, const Channel& channel) {
  const Rank to = channel.group > 0 ? -static_cast<Rank>(channel.group) : program.receivers_of(channel).front();
  return {channel.sender, to, channel.port};
}

Status wrong(const Program& program, std::size_t step, const char* what) {
  return failure(Code::internal, "rank %d, step %zu (lane %u): %s", program.rank, step,
                 lane_of(program, static_cast<std::uint32_t>(step)), what);
}

std::uint32_t limit_of(const Plan& plan, const Program& program, Space space) {
  switch (space) {
    case Space::input:
      return input_chunks(plan.shape, program.rank);
    case Space::output:
      return output_chunks(plan.shape, program.rank);
    case Space::scratch:
      return program.scratch_chunks;
    case Space::channel:
      return static_cast<std::uint32_t>(program.channels.size());
  }
  return 0;
}

Status check_operand(const Plan& plan, const Program& program, std::size_t index, const Operand& operand, bool is_target) {
  const Step& step = program.steps[index];
  const std::uint32_t limit = limit_of(plan, program, operand.space);
  if (operand.space == Space::channel) {
    if (operand.index >= limit) return wrong(program, index, "names a channel that does not exist");
    const Channel& channel = program.channels[operand.index];
    if (channel.count != step.count || channel.chunk != step.chunk)
      return wrong(program, index, "moves chunks that differ from its channel's");
    if (is_target != (channel.sender == program.rank)) return wrong(program, index, "uses the wrong end of its channel");
    if (is_target && step.stage != channel.stage) return wrong(program, index, "sends in another stage than its channel's");
    if (!is_target && step.stage != channel.stage + 1)
      return wrong(program, index, "receives in another stage than its channel's + 1");
    return {};
  }
  if (step.count > limit || operand.index > limit - step.count) return wrong(program, index, "is out of bounds");
  if (operand.space == Space::input && is_target) return wrong(program, index, "writes the input");
  for (const std::uint32_t i : {std::uint32_t{0}, step.count - 1}) {
    if (operand.space == Space::input && chunk_of_input(plan.shape, program.rank, operand.index + i) != step.chunk + i)
      return wrong(program, index, "reads another chunk of the input than its own");
    if (operand.space == Space::output && chunk_of_output(plan.shape, program.rank, operand.index + i) != step.chunk + i)
      return wrong(program, index, "accesses another chunk of the output than its own");
  }
  return {};
}

// Checks the operands that each verb may read and write. Copies and reduces may be fused, so their operands are places and
// channels.
Status check_verb(const Program& program, std::size_t index) {
  const Step& step = program.steps[index];
  const auto sources = program.sources(step);
  const auto targets = program.targets(step);
  const bool fusable = step.verb == Verb::copy || step.verb == Verb::reduce;
  if (sources.empty() || targets.empty()) return wrong(program, index, "has no source or no target");
  if (sources.size() > 1 && step.verb != Verb::reduce) return wrong(program, index, "has several sources but does not reduce");
  if ((step.finishes || step.rounds) && !fusable)
    return wrong(program, index, "finishes or rounds but neither copies nor reduces");
  for (const Operand& target : targets)
    if (target.scaled) return wrong(program, index, "scales a target");
  for (const Operand& source : sources)
    if (source.scaled && !fusable) return wrong(program, index, "scales a source but neither copies nor reduces");
  if (fusable) return {};
  if (targets.size() > 1) return wrong(program, index, "has several targets but neither copies nor reduces");
  if ((sources.front().space == Space::channel) != (step.verb == Verb::receive))
    return wrong(program, index, "receives from a place, or reads a channel without receiving");
  if ((targets.front().space == Space::channel) != (step.verb == Verb::send))
    return wrong(program, index, "sends to a place, or writes a channel without sending");
  return {};
}

// A target must not overlap another operand partly, because the result would depend on the order of the chunks. Only scratch
// operands can overlap partly: elsewhere a place holds the chunk that the step names, so two operands are equal or disjoint.
Status check_overlap(const Program& program, std::size_t index) {
  const Step& step = program.steps[index];
  const std::span<const Operand> all(program.operands.data() + step.first_operand,
                                     std::size_t{step.source_count} + step.target_count);
  for (const Operand& target : program.targets(step))
    for (const Operand& other : all) {
      if (target.space != Space::scratch || other.space != Space::scratch || target.index == other.index) continue;
      const std::uint32_t apart = std::max(target.index, other.index) - std::min(target.index, other.index);
      if (apart < step.count) return wrong(program, index, "has a target that overlaps another operand");
    }
  return {};
}

Status check_step(const Plan& plan, const Program& program, std::size_t index) {
  const Step& step = program.steps[index];
  const std::size_t operands = std::size_t{step.source_count} + step.target_count;
  if (step.first_operand + operands > program.operands.size()) return wrong(program, index, "has operands beyond the pool");
  if (step.first_dependency + std::size_t{step.dependency_count} > program.dependencies.size())
    return wrong(program, index, "has dependencies beyond the pool");
  if (step.count == 0) return wrong(program, index, "moves nothing");
  if (step.chunk + std::uint64_t{step.count} > logical_chunks(plan.shape))
    return wrong(program, index, "names chunks that do not exist");
  SETO_TRY(check_verb(program, index));
  if (plan.shape.codec == 0 && (step.verb == Verb::round || step.rounds))
    return wrong(program, index, "rounds, but the plan has no codec");
  for (const Operand& source : program.sources(step)) SETO_TRY(check_operand(plan, program, index, source, false));
  for (const Operand& target : program.targets(step)) SETO_TRY(check_operand(plan, program, index, target, true));
  SETO_TRY(check_overlap(program, index));
  for (const Dependency& dependency : program.dependencies_of(step))
    if (dependency.lane >= program.lanes.size() || dependency.steps > program.lanes[dependency.lane].step_count)
      return wrong(program, index, "waits for a step that does not exist");
  return {};
}

Status check_channel_uses(const Program& program) {
  std::vector<int> uses(program.channels.size(), 0);
  for (const Step& step : program.steps) {
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel) ++uses[source.index];
    for (const Operand& target : program.targets(step))
      if (target.space == Space::channel) ++uses[target.index];
  }
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i] != 1)
      return failure(Code::internal, "rank %d: channel %zu is used by %d steps, not one", program.rank, i, uses[i]);
  return {};
}

Status check_program(const Plan& plan, const Program& program) {
  std::uint64_t next = 0;
  for (const Lane& lane : program.lanes) {
    if (lane.first_step != next) return failure(Code::internal, "rank %d: its lanes are not contiguous", program.rank);
    next += lane.step_count;
  }
  if (next != program.steps.size())
    return failure(Code::internal, "rank %d: its lanes do not contain all its steps", program.rank);
  for (const Channel& channel : program.channels) {
    if (channel.receiver_count == 0 || channel.first_receiver + std::uint64_t{channel.receiver_count} > program.receivers.size())
      return failure(Code::internal, "rank %d has a channel without receivers", program.rank);
    const auto receivers = program.receivers_of(channel);
    const bool here =
        channel.sender == program.rank || std::find(receivers.begin(), receivers.end(), program.rank) != receivers.end();
    const bool there = std::find(receivers.begin(), receivers.end(), channel.sender) != receivers.end();
    if (!here || there)
      return failure(Code::internal, "rank %d has a channel of which it is no end, or whose sender is also a receiver",
                     program.rank);
    if (channel.coded && plan.shape.codec == 0)
      return failure(Code::internal, "rank %d has a coded channel, but the plan has no codec", program.rank);
    if (channel.group == 0 && channel.receiver_count != 1)
      return failure(Code::internal, "rank %d has a channel with several receivers but no multicast group", program.rank);
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) SETO_TRY(check_step(plan, program, i));
  return check_channel_uses(program);
}

bool agree(const Program& a, const Channel& left, const Program& b, const Channel& right) {
  const auto x = a.receivers_of(left);
  const auto y = b.receivers_of(right);
  return left.chunk == right.chunk && left.count == right.count && left.stage == right.stage && left.coded == right.coded &&
         std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace

std::uint32_t lane_of(const Program& program, std::uint32_t step) {
  const auto after = std::upper_bound(program.lanes.begin(), program.lanes.end(), step,
                                      [](std::uint32_t s, const Lane& lane) { return s < lane.first_step; });
  return static_cast<std::uint32_t>(after - program.lanes.begin()) - 1;
}

Status check_structure(const Plan& plan) {
  if (plan.programs.size() != static_cast<std::size_t>(plan.shape.ranks))
    return failure(Code::internal, "%zu programs for %d ranks", plan.programs.size(), plan.shape.ranks);
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    if (plan.programs[rank].rank != static_cast<Rank>(rank))
      return failure(Code::internal, "program %zu belongs to another rank", rank);
    SETO_TRY(check_program(plan, plan.programs[rank]));
  }
  return {};
}

Result<ChannelIndex> join_channels(const Plan& plan) {
  ChannelIndex index;
  index.of_program.resize(plan.programs.size());
  std::map<Address, std::uint32_t> known;
  std::vector<std::pair<Rank, std::uint32_t>> first_end;  // by joined channel: the first end, which the others must match
  std::vector<Rank> last_end;                             // by joined channel: the last rank that named it
  for (const Program& program : plan.programs) {
    auto& mine = index.of_program[static_cast<std::size_t>(program.rank)];
    for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
      const auto [entry, added] = known.try_emplace(address_of(program, program.channels[c]), index.channels.size());
      if (added) {
        index.channels.emplace_back();
        first_end.emplace_back(program.rank, c);
        last_end.push_back(program.rank);
      } else if (std::exchange(last_end[entry->second], program.rank) == program.rank) {
        return failure(Code::internal, "rank %d: two of its channels have the same address", program.rank);
      }
      const auto& [rank, number] = first_end[entry->second];
      const Program& other = plan.programs[static_cast<std::size_t>(rank)];
      if (!agree(program, program.channels[c], other, other.channels[number]))
        return failure(Code::internal, "ranks %d and %d disagree on a channel of rank %d", program.rank, rank,
                       other.channels[number].sender);
      mine.push_back(entry->second);
    }
    for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
      for (const Operand& target : program.targets(program.steps[s])) {
        if (target.space != Space::channel) continue;
        JoinedChannel& channel = index.channels[mine[target.index]];
        if (channel.sender.rank >= 0) return failure(Code::internal, "rank %d sends twice on one channel", program.rank);
        channel.sender = {program.rank, s};
      }
      for (const Operand& source : program.sources(program.steps[s]))
        if (source.space == Space::channel) index.channels[mine[source.index]].receivers.push_back({program.rank, s});
    }
  }
  for (std::size_t i = 0; i < index.channels.size(); ++i) {
    const Program& program = plan.programs[static_cast<std::size_t>(first_end[i].first)];
    const Channel& channel = program.channels[first_end[i].second];
    if (index.channels[i].sender.rank != channel.sender)
      return failure(Code::internal, "rank %d does not send a message that rank %d expects", channel.sender, program.rank);
    if (index.channels[i].receivers.size() != channel.receiver_count)
      return failure(Code::internal, "a message of rank %d reaches %zu of %u receivers", channel.sender,
                     index.channels[i].receivers.size(), channel.receiver_count);
  }
  return index;
}

}  // namespace seto

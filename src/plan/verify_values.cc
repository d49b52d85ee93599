#include "src/plan/verify_values.h"

#include <algorithm>
#include <array>
#include <cinttypes>

#include "src/plan/chunk_map.h"
#include "src/plan/first_encodings.h"

namespace seto {
namespace {

// One run of a whole plan on symbols, in an order that its dependencies allow. check_races proves that every other order gives
// the same values.
class SymbolicRun {
 public:
  SymbolicRun(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request)
      : plan_(plan), index_(index), request_(request), messages_(index.channels.size()) {
    std::uint32_t first = 0;
    for (const Program& program : plan.programs) {
      first_node_.push_back(first);
      first += static_cast<std::uint32_t>(program.steps.size());
      ranks_.emplace_back(plan.shape, program.rank, in_place_of(program.rank));
      ranks_.back().done.assign(program.lanes.size(), 0);
      if (request.residuals) ranks_.back().indebted = first_encodings(program);
    }
    words_ = (first + 63) / 64;
    before_.assign(std::size_t{first} * words_, 0);
  }

  Status run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Program& program : plan_.programs)
        for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
          while (ready(program, lane)) {
            SETO_TRY(take(program, lane));
            moved = true;
          }
    }
    for (const Program& program : plan_.programs)
      for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane)
        if (state(program).done[lane] < program.lanes[lane].step_count)
          return failure(Code::internal, "rank %d, lane %u: step %u never becomes ready", program.rank, lane,
                         state(program).done[lane]);
    return {};
  }

  Status check_races() const {
    for (const Program& program : plan_.programs)
      for (const std::vector<Access>& accesses : state(program).accesses)
        for (std::size_t a = 0; a < accesses.size(); ++a)
          for (std::size_t b = a + 1; b < accesses.size(); ++b) {
            if (!accesses[a].writes && !accesses[b].writes) continue;
            if (accesses[a].node == accesses[b].node || ordered(accesses[a].node, accesses[b].node) ||
                ordered(accesses[b].node, accesses[a].node))
              continue;
            const std::uint32_t base = first_node_[static_cast<std::size_t>(program.rank)];
            return failure(Code::internal, "rank %d: steps %u and %u access the same place without an order", program.rank,
                           accesses[a].node - base, accesses[b].node - base);
          }
    return {};
  }

  Result<Outcome> outcome() {
    Outcome outcome;
    std::vector<std::uint64_t> agreed(logical_chunks(plan_.shape), 0);
    for (const Program& program : plan_.programs) {
      outcome.outputs.emplace_back();
      for (std::uint32_t i = 0; i < output_chunks(plan_.shape, program.rank); ++i) {
        const SymbolicValue& value = at(program, Space::output, i);
        const std::uint32_t chunk = chunk_of_output(plan_.shape, program.rank, i);
        if (!is_owed(chunk)) {
          if (value.defined)
            return failure(Code::internal, "rank %d: chunk %u of its output is written but belongs to no message", program.rank,
                           chunk);
          continue;
        }
        SETO_TRY(check_output(program, chunk, value));
        if (agreed[chunk] != 0 && agreed[chunk] != value.digest)
          return failure(Code::internal, "rank %d: chunk %u differs in its bits from another rank's", program.rank, chunk);
        agreed[chunk] = value.digest;
        outcome.outputs.back().push_back(value.digest);
      }
    }
    return outcome;
  }

 private:
  struct Access {
    std::uint32_t node;
    bool writes;
  };
  struct Cell {
    SymbolicValue value;
    std::uint16_t stage = 0;
  };
  struct RankState {
    RankState(const Shape& shape, Rank rank, InPlace in_place) : places(shape, rank, in_place) {}
    PlaceTable places;
    std::vector<Cell> cells;                    // by place
    std::vector<std::vector<Access>> accesses;  // by place
    std::vector<std::uint32_t> done;            // by lane
    std::vector<std::vector<bool>> indebted;    // by step and its chunk: whether it adds a residual; empty: none does
  };
  struct Message {
    bool sent = false;
    std::uint32_t node = 0;
    std::vector<SymbolicValue> chunks;
  };

  bool is_owed(std::uint32_t chunk) const {
    return request_.messages.empty() || chunk % plan_.shape.pieces < request_.messages[chunk / plan_.shape.pieces];
  }
  InPlace in_place_of(Rank rank) const {
    return request_.in_place.empty() ? InPlace::no : request_.in_place[static_cast<std::size_t>(rank)];
  }
  RankState& state(const Program& program) { return ranks_[static_cast<std::size_t>(program.rank)]; }
  const RankState& state(const Program& program) const { return ranks_[static_cast<std::size_t>(program.rank)]; }
  Message& message(const Program& program, std::uint32_t channel) {
    return messages_[index_.of_program[static_cast<std::size_t>(program.rank)][channel]];
  }

  bool ready(const Program& program, std::uint32_t lane) {
    const RankState& rank = state(program);
    if (rank.done[lane] == program.lanes[lane].step_count) return false;
    const Step& step = program.steps_of(program.lanes[lane])[rank.done[lane]];
    for (const Dependency& dependency : program.dependencies_of(step))
      if (rank.done[dependency.lane] < dependency.steps) return false;
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel && !message(program, source.index).sent) return false;
    return true;
  }

  void precedes(std::uint32_t earlier, std::uint32_t later) {
    std::uint64_t* row = &before_[std::size_t{later} * words_];
    const std::uint64_t* other = &before_[std::size_t{earlier} * words_];
    for (std::size_t w = 0; w < words_; ++w) row[w] |= other[w];
    row[earlier / 64] |= std::uint64_t{1} << (earlier % 64);
  }
  bool ordered(std::uint32_t earlier, std::uint32_t later) const {
    return (before_[std::size_t{later} * words_ + earlier / 64] >> (earlier % 64) & 1) != 0;
  }

  Status take(const Program& program, std::uint32_t lane) {
    RankState& rank = state(program);
    const std::uint32_t index = program.lanes[lane].first_step + rank.done[lane];
    const Step& step = program.steps[index];
    const std::uint32_t base = first_node_[static_cast<std::size_t>(program.rank)];
    const std::uint32_t node = base + index;
    if (rank.done[lane] > 0) precedes(node - 1, node);
    for (const Dependency& dependency : program.dependencies_of(step))
      if (dependency.steps > 0) precedes(base + program.lanes[dependency.lane].first_step + dependency.steps - 1, node);
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel) precedes(message(program, source.index).node, node);
    for (const Operand& target : program.targets(step))
      if (target.space == Space::channel) message(program, target.index).chunks.clear();
    for (std::uint32_t i = 0; i < step.count; ++i) SETO_TRY(compute(program, step, node, i));
    for (const Operand& target : program.targets(step)) {
      if (target.space != Space::channel) continue;
      Message& sent = message(program, target.index);
      sent.sent = true;
      sent.node = node;
    }
    ++rank.done[lane];
    return {};
  }

  // Computes chunk i of a step.
  Status compute(const Program& program, const Step& step, std::uint32_t node, std::uint32_t i) {
    const std::uint32_t index = node - first_node_[static_cast<std::size_t>(program.rank)];
    std::vector<SymbolicValue> values;
    for (const Operand& source : program.sources(step)) {
      if (source.space == Space::channel) {
        values.push_back(message(program, source.index).chunks[i]);
      } else {
        const Cell& cell = touch(program, source, i, node, false);
        if (!cell.value.defined)
          return failure(Code::internal, "rank %d, step %u: reads a place that no step wrote", program.rank, index);
        if (cell.stage > step.stage)
          return failure(Code::internal, "rank %d, step %u: its stage is below that of its value", program.rank, index);
        values.push_back(cell.value);
      }
      // A wrong chunk here gives a wrong number of elements as well as wrong data.
      if (values.back().contributions.front().chunk != step.chunk + i)
        return failure(Code::internal, "rank %d, step %u: reads chunk %u as chunk %u", program.rank, index,
                       values.back().contributions.front().chunk, step.chunk + i);
      if (source.scaled) values.back() = scaled(values.back(), program.rank);
    }
    const std::vector<std::vector<bool>>& indebted = state(program).indebted;
    const bool in_debt = !indebted.empty() && indebted[index][i];
    const SymbolicValue result = apply(step, program.rank, values, in_debt);
    for (const Operand& target : program.targets(step)) {
      if (target.space == Space::channel) {
        message(program, target.index).chunks.push_back(as_sent(result, program.channels[target.index], program.rank, in_debt));
      } else {
        Cell& cell = touch(program, target, i, node, true);
        cell.value = result;
        cell.value.has_bytes = result.has_bytes && request_.places_keep_bytes;
        cell.stage = step.stage;
      }
    }
    return {};
  }

  static SymbolicValue coded(const SymbolicValue& value, Rank rank, bool in_debt) {
    return in_debt ? rounded_with_debt(value, rank) : rounded(value);
  }

  SymbolicValue apply(const Step& step, Rank rank, const std::vector<SymbolicValue>& values, bool in_debt) const {
    SymbolicValue result = step.verb == Verb::reduce ? folded(values, request_.chains) : values.front();
    if (step.verb == Verb::scale) result = scaled(result, rank);
    if (step.verb == Verb::finish || step.finishes) result = finished(result);
    if (step.verb == Verb::round || step.rounds) result = coded(result, rank, in_debt);
    return result;
  }

  static SymbolicValue as_sent(const SymbolicValue& value, const Channel& channel, Rank rank, bool in_debt) {
    if (channel.coded) return value.has_bytes ? value : coded(value, rank, in_debt);
    SymbolicValue plain = value;
    plain.has_bytes = false;
    return plain;
  }

  Cell& touch(const Program& program, const Operand& operand, std::uint32_t i, std::uint32_t node, bool writes) {
    RankState& rank = state(program);
    const std::uint32_t place = place_of(program, operand.space, operand.index + i);
    rank.accesses[place].push_back({node, writes});
    return rank.cells[place];
  }

  std::uint32_t place_of(const Program& program, Space space, std::uint32_t index) {
    RankState& rank = state(program);
    const std::uint32_t known = rank.places.size();
    const std::uint32_t place = rank.places.id(space, index);
    if (place == known) {
      rank.cells.emplace_back();
      rank.accesses.emplace_back();
      if (const auto chunk = input_at(program, space, index)) rank.cells[place].value = contribution_of(program.rank, *chunk);
    }
    return place;
  }

  // The chunk of the input that lies at a place before the first step, if any.
  std::optional<std::uint32_t> input_at(const Program& program, Space space, std::uint32_t index) const {
    if (space == Space::input) return chunk_of_input(plan_.shape, program.rank, index);
    if (space != Space::output || in_place_of(program.rank) == InPlace::no) return std::nullopt;
    const std::uint32_t chunk = chunk_of_output(plan_.shape, program.rank, index);
    return input_index(plan_.shape, program.rank, chunk) ? std::optional(chunk) : std::nullopt;
  }

  const SymbolicValue& at(const Program& program, Space space, std::uint32_t index) {
    return state(program).cells[place_of(program, space, index)].value;
  }

  Status check_output(const Program& program, std::uint32_t chunk, const SymbolicValue& value) const {
    const auto wrong = [&](const char* what) {
      return failure(Code::internal, "rank %d: chunk %u of its output %s", program.rank, chunk, what);
    };
    if (!value.defined) return wrong("is never written");
    if (value.encodings > request_.max_encodings) return wrong("was encoded too often");
    const bool sum = reduces(plan_.shape.collective);
    const bool scales = sum && plan_.shape.finish == Finish::scale_contributions;
    if (value.finishes != (sum && plan_.shape.finish == Finish::divide_result ? 1U : 0U))
      return wrong("is not finished exactly once");
    const std::size_t expected = sum ? static_cast<std::size_t>(plan_.shape.ranks) : 1;
    if (value.contributions.size() != expected) return wrong("does not hold one contribution of each rank that contributes");
    for (std::size_t i = 0; i < expected; ++i) {
      const Rank rank = sum ? static_cast<Rank>(i) : owner_of(plan_.shape, chunk);
      if (value.contributions[i] != SymbolicValue::Contribution{chunk, rank, scales}) return wrong("holds a wrong contribution");
    }
    return {};
  }

  const Plan& plan_;
  const ChannelIndex& index_;
  const VerifyRequest& request_;
  std::vector<Message> messages_;
  std::vector<RankState> ranks_;
  std::vector<std::uint32_t> first_node_;  // by rank: number of its first step in the joint numbering
  std::size_t words_ = 0;
  std::vector<std::uint64_t> before_;  // bit e of row l: step e runs before step l in every execution
};

}  // namespace

Result<Outcome> verify_values(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request) {
  SymbolicRun run(plan, index, request);
  SETO_TRY(run.run());
  SETO_TRY(run.check_races());
  return run.outcome();
}

}  // namespace seto

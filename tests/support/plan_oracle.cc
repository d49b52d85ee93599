#include "tests/support/plan_oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/check.h"
#include "src/plan/chunk_map.h"

namespace seto::support {
namespace {

using Elements = std::vector<OracleElement>;

constexpr std::uint64_t kSlice = 2;  // elements

// Chunks have different lengths, some zero, so that a step that moves the wrong chunk moves the wrong number of elements.
std::uint64_t length_of(std::uint32_t chunk) {
  constexpr std::uint64_t kLengths[] = {3, 5, 0, 4, 1};
  return kLengths[chunk % 5];
}

std::uint64_t hashed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

OracleElement contribution(Rank rank, std::uint32_t chunk, std::uint64_t at) {
  const std::uint64_t x = hashed((static_cast<std::uint64_t>(rank) << 40) + (std::uint64_t{chunk} << 16) + at);
  return {x, 1.0F + static_cast<float>(x >> 40) / static_cast<float>(1 << 24)};
}

// Neither operation commutes with a sum in wrapping integers, so a misplaced scaling or finish changes the result.
OracleElement scaled(OracleElement value, Rank by) {
  const auto factor = static_cast<std::uint64_t>(by) * 2 + 3;
  return {value.exact * factor, value.rounded * (1.0F / (static_cast<float>(by) + 1.7F))};
}
OracleElement finished(OracleElement value, int ranks) {
  return {value.exact * 7 + 13, value.rounded / static_cast<float>(ranks)};
}

// Like a codec, it removes bits. A second encoding gives other bits, so that a plan that does not forward the encoded bytes is
// detected.
OracleElement coded(OracleElement value) {
  const float larger = value.rounded * 1.01F;
  return {value.exact, std::ldexp(std::round(std::ldexp(larger, 8)), -8), true};
}

struct Place {
  Elements elements;
};

class Interleaving {
 public:
  Interleaving(const OracleRun& run, std::mt19937_64& random) : run_(run), plan_(run.plan), random_(random) {
    std::uint64_t longest = 0;
    for (std::uint32_t chunk = 0; chunk < logical_chunks(plan_.shape); ++chunk) longest = std::max(longest, length_of(chunk));
    room_ = longest + kSlice;
    slices_ = std::max<std::uint64_t>(1, (longest + kSlice - 1) / kSlice);
    capacity_ = run.request.order == StepOrder::skewed ? run.request.capacity : 1 + pick(3);
    messages_.resize(run.index.channels.size());
    for (std::size_t i = 0; i < messages_.size(); ++i) messages_[i].taken.assign(run.index.channels[i].receivers.size(), 0);
    for (const Program& program : plan_.programs) add_rank(program);
    patient_ = pick(2) == 0;
  }

  std::optional<std::string> run() {
    std::vector<std::pair<std::size_t, std::uint32_t>> ready;
    for (;;) {
      ready.clear();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) collect(rank, ready);
      if (ready.empty()) break;
      advance(choose(ready));
    }
    return verdict();
  }

  Elements output(std::uint32_t chunk) {
    for (const Program& program : plan_.programs)
      if (const auto index = output_index(plan_.shape, program.rank, chunk))
        return part(program, {Space::output, false, *index}, chunk);
    return {};
  }

 private:
  struct Flight {  // a step that has begun and not ended
    std::uint32_t lane;
    std::uint32_t step;
    std::uint64_t slice;
    std::vector<Elements> results;  // by chunk; empty: the step reads and writes chunk by chunk at its end
  };
  struct RankState {
    std::vector<std::vector<Place>> spaces;  // input, output, scratch
    std::vector<std::uint64_t> done;         // by lane
    std::vector<std::uint64_t> weight;       // by lane: its priority when the scheduler is patient
    std::vector<Flight> flights;
    std::uint64_t position = 0;  // position in the skewed order
  };
  struct Message {
    std::uint64_t sent = 0;
    std::vector<std::uint64_t> taken;
    std::vector<std::vector<Elements>> slices;
  };

  std::uint64_t pick(std::uint64_t count) { return random_() % count; }

  void add_rank(const Program& program) {
    RankState state;
    const Shape& shape = plan_.shape;
    for (const std::uint32_t count :
         {input_chunks(shape, program.rank), output_chunks(shape, program.rank), program.scratch_chunks}) {
      state.spaces.emplace_back(count);
      for (Place& place : state.spaces.back())
        for (std::uint64_t i = 0; i < room_; ++i) place.elements.push_back({random_(), -static_cast<float>(i) - 5.0F});
    }
    state.done.assign(program.lanes.size(), 0);
    for (std::size_t i = 0; i < program.lanes.size(); ++i) state.weight.push_back(random_());
    ranks_.push_back(std::move(state));
    for (std::uint32_t i = 0; i < input_chunks(shape, program.rank); ++i) {
      const std::uint32_t chunk = chunk_of_input(shape, program.rank, i);
      for (std::uint64_t e = 0; e < length_of(chunk); ++e)
        place(program, {Space::input, false, i}).elements[e] = contribution(program.rank, chunk, e);
    }
  }

  Place& place(const Program& program, Operand operand) {
    const auto rank = static_cast<std::size_t>(program.rank);
    const auto& in_place = run_.request.in_place;
    if (operand.space == Space::input && !in_place.empty() && in_place[rank] == InPlace::yes) {
      if (const auto same = output_index(plan_.shape, program.rank, chunk_of_input(plan_.shape, program.rank, operand.index)))
        operand = {Space::output, false, *same};
    }
    return ranks_[rank].spaces[static_cast<std::size_t>(operand.space)][operand.index];
  }

  Elements part(const Program& program, Operand operand, std::uint32_t chunk) {
    const Elements& all = place(program, operand).elements;
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length_of(chunk))};
  }

  // ---- steps that can run -----------------------------------------------------------------------------------------------------

  void collect(std::size_t rank, std::vector<std::pair<std::size_t, std::uint32_t>>& ready) {
    const Program& program = plan_.programs[rank];
    RankState& state = ranks_[rank];
    for (std::uint32_t i = 0; i < state.flights.size(); ++i)
      ready.emplace_back(rank, static_cast<std::uint32_t>(program.lanes.size()) + i);
    if (run_.request.order == StepOrder::skewed) {
      const auto next = next_skewed(rank);
      if (next && can_begin(rank, *next, state.done[*next])) ready.emplace_back(rank, *next);
      return;
    }
    for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane) {
      if (state.done[lane] == slices_ * program.lanes[lane].step_count) continue;
      if (can_begin(rank, lane, state.done[lane] / program.lanes[lane].step_count)) ready.emplace_back(rank, lane);
    }
  }

  std::optional<std::uint32_t> next_skewed(std::size_t rank) {
    const Program& program = plan_.programs[rank];
    RankState& state = ranks_[rank];
    if (!state.flights.empty() || program.lanes.empty()) return std::nullopt;
    for (; state.position < program.lanes.size() * (slices_ + program.stages()); ++state.position) {
      const auto lane = static_cast<std::uint32_t>(state.position % program.lanes.size());
      const std::uint64_t round = state.position / program.lanes.size();
      if (program.lanes[lane].step_count == 0) continue;
      const std::uint64_t stage = program.steps[program.lanes[lane].first_step].stage;
      if (round >= stage && round - stage < slices_) return lane;
    }
    return std::nullopt;
  }

  bool can_begin(std::size_t rank, std::uint32_t lane, std::uint64_t slice) {
    const Program& program = plan_.programs[rank];
    const RankState& state = ranks_[rank];
    for (const Flight& flight : state.flights)
      if (flight.lane == lane) return false;
    const Step& step = program.steps[step_at(rank, lane)];
    for (const Dependency& dependency : program.dependencies_of(step)) {
      const std::uint64_t length = program.lanes[dependency.lane].step_count;
      if (dependency.steps > 0 && state.done[dependency.lane] < slice * length + dependency.steps) return false;
    }
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel && message(rank, source).sent <= slice) return false;
    for (const Operand& target : program.targets(step)) {
      if (target.space != Space::channel) continue;
      const Message& out = message(rank, target);
      if (!out.taken.empty() && slice >= *std::min_element(out.taken.begin(), out.taken.end()) + capacity_) return false;
    }
    return true;
  }

  std::uint32_t step_at(std::size_t rank, std::uint32_t lane) const {
    const Lane& at = plan_.programs[rank].lanes[lane];
    return at.first_step + static_cast<std::uint32_t>(ranks_[rank].done[lane] % at.step_count);
  }
  Message& message(std::size_t rank, const Operand& operand) { return messages_[run_.index.of_program[rank][operand.index]]; }

  std::pair<std::size_t, std::uint32_t> choose(const std::vector<std::pair<std::size_t, std::uint32_t>>& ready) {
    if (!patient_ || pick(16) == 0) return ready[pick(ready.size())];
    const auto weight = [&](const auto& at) {
      const RankState& state = ranks_[at.first];
      const std::size_t lanes = state.weight.size();
      return at.second < lanes ? state.weight[at.second] : state.weight[state.flights[at.second - lanes].lane] / 2;
    };
    return *std::max_element(ready.begin(), ready.end(), [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
  }

  // ---- one step of one slice
  // ---------------------------------------------------------------------------------------------------

  void advance(std::pair<std::size_t, std::uint32_t> at) {
    const auto [rank, which] = at;
    const Program& program = plan_.programs[rank];
    RankState& state = ranks_[rank];
    if (which < program.lanes.size()) {
      const std::uint32_t index = step_at(rank, which);
      Flight flight{which, index, state.done[which] / program.lanes[which].step_count, {}};
      if (pick(2) == 0)
        for (std::uint32_t i = 0; i < program.steps[index].count; ++i) flight.results.push_back(read(rank, flight, i));
      state.flights.push_back(std::move(flight));
      return;
    }
    const std::size_t number = which - program.lanes.size();
    end(rank, state.flights[number]);
    ++state.done[state.flights[number].lane];
    ++state.position;
    state.flights.erase(state.flights.begin() + static_cast<std::ptrdiff_t>(number));
  }

  void end(std::size_t rank, const Flight& flight) {
    const Program& program = plan_.programs[rank];
    const Step& step = program.steps[flight.step];
    std::vector<std::uint32_t> chunks(step.count);
    std::iota(chunks.begin(), chunks.end(), 0U);
    std::shuffle(chunks.begin(), chunks.end(), random_);
    for (const Operand& target : program.targets(step))
      if (target.space == Space::channel) message(rank, target).slices.emplace_back(step.count);
    for (const std::uint32_t i : chunks)
      write(rank, flight, i, flight.results.empty() ? read(rank, flight, i) : flight.results[i]);
    for (const Operand& target : program.targets(step))
      if (target.space == Space::channel) ++message(rank, target).sent;
    for (const Operand& source : program.sources(step)) {
      if (source.space != Space::channel) continue;
      const auto& ends = run_.index.channels[run_.index.of_program[rank][source.index]].receivers;
      for (std::size_t e = 0; e < ends.size(); ++e)
        if (ends[e].rank == static_cast<Rank>(rank) && ends[e].step == flight.step) ++message(rank, source).taken[e];
    }
  }

  // The elements of slice `slice` of chunk i. The step determines their number.
  Elements read(std::size_t rank, const Flight& flight, std::uint32_t i) {
    const Program& program = plan_.programs[rank];
    const Step& step = program.steps[flight.step];
    std::vector<Elements> sources;
    for (const Operand& source : program.sources(step)) {
      sources.push_back(load(rank, source, flight, i));
      if (source.scaled || step.verb == Verb::scale)
        for (OracleElement& element : sources.back()) element = scaled(element, program.rank);
    }
    Elements result = sources.front();
    for (std::size_t e = 0; e < result.size(); ++e) {
      double wide = result[e].rounded;  // types with a wider accumulator round once for each step, the others at every addition
      for (std::size_t s = 1; s < sources.size(); ++s) {
        result[e].exact += sources[s][e].exact;
        wide += sources[s][e].rounded;
        if (run_.request.chains == Chains::one_sum) wide = static_cast<float>(wide);
      }
      result[e].rounded = static_cast<float>(wide);
      if (sources.size() > 1) result[e].has_bytes = false;
      if (step.finishes || step.verb == Verb::finish) result[e] = finished(result[e], plan_.shape.ranks);
      if (step.rounds || step.verb == Verb::round) result[e] = coded(result[e]);
    }
    return result;
  }

  Elements load(std::size_t rank, const Operand& source, const Flight& flight, std::uint32_t i) {
    const Program& program = plan_.programs[rank];
    const auto [begin, length] = slice_of(program.steps[flight.step].chunk + i, flight.slice);
    Elements loaded;
    if (source.space == Space::channel) {
      loaded = message(rank, source).slices[flight.slice][i];
      loaded.resize(length);
    } else {
      const Elements& all = place(program, {source.space, false, source.index + i}).elements;
      loaded.assign(all.begin() + begin, all.begin() + begin + static_cast<std::ptrdiff_t>(length));
    }
    return loaded;
  }

  void write(std::size_t rank, const Flight& flight, std::uint32_t i, const Elements& elements) {
    const Program& program = plan_.programs[rank];
    const Step& step = program.steps[flight.step];
    const auto [begin, length] = slice_of(step.chunk + i, flight.slice);
    for (const Operand& target : program.targets(step)) {
      if (target.space == Space::channel) {
        Elements& sent = message(rank, target).slices[flight.slice][i] = elements;
        for (OracleElement& element : sent)
          if (!program.channels[target.index].coded)
            element.has_bytes = false;
          else if (!element.has_bytes)
            element = coded(element);
      } else {
        const auto to = place(program, {target.space, false, target.index + i}).elements.begin() + begin;
        std::copy(elements.begin(), elements.end(), to);
        for (std::size_t e = 0; e < elements.size() && !run_.request.places_keep_bytes; ++e)
          to[static_cast<std::ptrdiff_t>(e)].has_bytes = false;
      }
    }
  }

  static std::pair<std::ptrdiff_t, std::uint64_t> slice_of(std::uint32_t chunk, std::uint64_t slice) {
    const std::uint64_t begin = std::min(length_of(chunk), slice * kSlice);
    return {static_cast<std::ptrdiff_t>(begin), std::min(kSlice, length_of(chunk) - begin)};
  }

  // ---- results
  // -----------------------------------------------------------------------------------------------------------------

  std::optional<std::string> verdict() {
    for (const Program& program : plan_.programs)
      for (std::size_t lane = 0; lane < program.lanes.size(); ++lane)
        if (ranks_[static_cast<std::size_t>(program.rank)].done[lane] < slices_ * program.lanes[lane].step_count)
          return "rank " + std::to_string(program.rank) + " is stuck in lane " + std::to_string(lane);
    std::vector<Elements> seen(logical_chunks(plan_.shape));
    if (run_.expected != nullptr) seen = *run_.expected;
    for (const Program& program : plan_.programs)
      for (std::uint32_t i = 0; i < output_chunks(plan_.shape, program.rank); ++i) {
        const std::uint32_t chunk = chunk_of_output(plan_.shape, program.rank, i);
        const Elements got = part(program, {Space::output, false, i}, chunk);
        const std::string where = "rank " + std::to_string(program.rank) + ", chunk " + std::to_string(chunk);
        if (seen[chunk].empty()) seen[chunk] = got;
        for (std::uint64_t e = 0; e < got.size(); ++e) {
          if (got[e].exact != promised(chunk, e)) return where + ": a wrong value";
          if (got[e].rounded != seen[chunk][e].rounded) return where + ": other bits";
        }
      }
    return std::nullopt;
  }

  std::uint64_t promised(std::uint32_t chunk, std::uint64_t at) const {
    const Shape& shape = plan_.shape;
    if (!reduces(shape.collective)) return contribution(owner_of(shape, chunk), chunk, at).exact;
    OracleElement sum;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      const OracleElement own = contribution(rank, chunk, at);
      sum.exact += shape.finish == Finish::scale_contributions ? scaled(own, rank).exact : own.exact;
    }
    return shape.finish == Finish::divide_result ? finished(sum, shape.ranks).exact : sum.exact;
  }

  const OracleRun& run_;
  const Plan& plan_;
  std::mt19937_64& random_;
  std::uint64_t room_ = 0;
  std::uint64_t slices_ = 1;
  std::uint64_t capacity_ = 1;
  bool patient_ = false;  // mostly weights decide: finds errors that need long delays
  std::vector<RankState> ranks_;
  std::vector<Message> messages_;
};

}  // namespace

std::optional<std::string> run_once(const OracleRun& run, std::mt19937_64& random) { return Interleaving(run, random).run(); }

std::vector<std::vector<OracleElement>> outputs_of(const OracleRun& run, std::mt19937_64& random) {
  Interleaving once(run, random);
  SETO_CHECK(!once.run());
  std::vector<Elements> outputs;
  for (std::uint32_t chunk = 0; chunk < logical_chunks(run.plan.shape); ++chunk) outputs.push_back(once.output(chunk));
  return outputs;
}

}  // namespace seto::support

#include "src/engine/lowering.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "src/base/check.h"
#include "src/engine/value_graph.h"
#include "src/plan/scratch.h"

namespace seto {
namespace {

struct Fused {
  Step step;  // verb, stage, order, chunk and count are right; its pools are not filled yet
  std::vector<Operand> sources;
  std::vector<Operand> targets;
  std::uint32_t value = kNoValue;
};

class Lowering {
 public:
  Lowering(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules)
      : plain_(plain), graph_(plain, shape, in_place, rules), hazards_(shape, plain.rank, in_place) {}

  Program run() {
    for (const std::uint32_t step : graph_.order()) visit(step);
    std::stable_sort(fused_.begin(), fused_.end(), [](const Fused& a, const Fused& b) {
      return a.step.stage != b.step.stage ? a.step.stage < b.step.stage : a.step.order < b.step.order;
    });
    Program program;
    program.rank = plain_.rank;
    program.scratch_chunks = plain_.scratch_chunks;
    program.fan = plain_.fan;
    program.channels = plain_.channels;
    program.receivers = plain_.receivers;
    for (Fused& fused : fused_) append_cut(program, fused);
    compact_scratch(program);
    return program;
  }

 private:
  void visit(std::uint32_t index) {
    const Step& step = plain_.steps[index];
    if (step.verb == Verb::send) return visit_send(index);
    const std::uint32_t id = graph_.value_of_step(index);
    const Value& value = graph_.value(id);
    if (value.inlined || value.alias_of != kNoValue) return;
    const bool of_own_input = graph_.read(index, 0).own_input && (step.verb == Verb::copy || step.verb == Verb::scale);
    Fused& fused = of_own_input ? pass_over(index) : fresh(step, sources_of(index));
    fused.value = id;
    fused.step.finishes = value.finishes || step.verb == Verb::finish;
    fused.step.rounds = value.rounds || step.verb == Verb::round;
    add_targets(fused, id);
    for (const std::uint32_t alias : graph_.aliases_of(id)) add_targets(fused, alias);
  }

  void visit_send(std::uint32_t index) {
    const Step& step = plain_.steps[index];
    const std::uint32_t id = graph_.read(index, 0).value;
    if (id != kNoValue) {
      const Value& value = graph_.value(id);
      const Value& made = value.alias_of == kNoValue ? value : graph_.value(value.alias_of);
      const bool made_now = !made.inlined && plain_.steps[made.step].stage == step.stage;
      if (made_now) return;  // a target of the pass that makes it
    }
    pass_over(index).targets.push_back(plain_.targets(step).front());
  }

  // The operands from which a step reads, with values that are never stored replaced by their sources: messages in their slots,
  // chains of sums, scaled input.
  std::vector<Operand> sources_of(std::uint32_t index) {
    const Step& step = plain_.steps[index];
    std::vector<Operand> all;
    for (std::uint32_t i = 0; i < step.source_count; ++i) {
      const std::uint32_t id = graph_.read(index, i).value;
      if (id != kNoValue && graph_.value(id).inlined) {
        const std::vector<Operand> inner = sources_of(graph_.value(id).step);
        all.insert(all.end(), inner.begin(), inner.end());
      } else {
        all.push_back(plain_.sources(step)[i]);
      }
    }
    if (step.verb == Verb::scale) all.front().scaled = true;
    return all;
  }

  void add_targets(Fused& fused, std::uint32_t id) {
    const Value& value = graph_.value(id);
    if (value.stored || value.live_out) fused.targets.push_back(value.place);
    for (const std::uint32_t reader : value.readers) {
      const Step& step = plain_.steps[reader];
      if (step.verb == Verb::send && step.stage == fused.step.stage) fused.targets.push_back(plain_.targets(step).front());
    }
  }

  Fused& fresh(const Step& step, std::vector<Operand> sources) {
    Fused fused;
    fused.step = step;
    if (step.verb != Verb::reduce) fused.step.verb = Verb::copy;
    fused.sources = std::move(sources);
    fused_.push_back(std::move(fused));
    return fused_.back();
  }

  // Copies of the same value in the same stage are one pass with several targets.
  Fused& pass_over(std::uint32_t index) {
    const Step& step = plain_.steps[index];
    const ValueRead& read = graph_.read(index, 0);
    std::vector<Operand> sources = sources_of(index);
    if (read.value == kNoValue && !read.own_input)
      return fresh(step, std::move(sources));  // several values: others may come between
    const Operand& from = sources.front();
    const PassKey key{step.stage, step.chunk,           step.count, read.value, static_cast<std::uint32_t>(from.space),
                      from.index, from.scaled ? 1U : 0U};
    const auto [known, added] = passes_.try_emplace(key, fused_.size());
    if (!added && !fused_[known->second].step.finishes && !fused_[known->second].step.rounds) return fused_[known->second];
    known->second = fused_.size();
    return fresh(step, std::move(sources));
  }

  // More targets than a step can have are written by further passes, which read what the first one stored, or the same source.
  void append_cut(Program& program, Fused& fused) {
    while (fused.targets.size() > kMostTargets) {
      const auto place = std::find_if(fused.targets.begin(), fused.targets.end(),
                                      [](const Operand& target) { return target.space != Space::channel; });
      const bool is_stored = place != fused.targets.end();
      if (is_stored) std::rotate(fused.targets.begin(), place, place + 1);
      Fused first = fused;
      first.targets.resize(kMostTargets);
      append(program, first);
      if (is_stored) {
        fused.sources = {fused.targets.front()};
        fused.step.verb = Verb::copy;
        fused.step.finishes = fused.step.rounds = false;
      }
      SETO_CHECK(fused.sources.size() == 1 && fused.sources.front().space != Space::channel);
      fused.targets.erase(fused.targets.begin(), fused.targets.begin() + kMostTargets);
    }
    append(program, fused);
  }

  void append(Program& program, const Fused& fused) {
    if (fused.targets.empty()) return;  // no step needs the value
    const auto lane = static_cast<std::uint32_t>(program.lanes.size());
    Step step = fused.step;
    step.first_operand = static_cast<std::uint32_t>(program.operands.size());
    step.source_count = static_cast<std::uint16_t>(fused.sources.size());
    step.target_count = static_cast<std::uint16_t>(fused.targets.size());
    for (const Operand& source : fused.sources) hazards_.read(source.space, source.index, step.count);
    for (const Operand& target : fused.targets) hazards_.write(target.space, target.index, step.count);
    const std::vector<Dependency> needed = hazards_.take({lane, 0});
    step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    step.dependency_count = static_cast<std::uint32_t>(needed.size());
    program.operands.insert(program.operands.end(), fused.sources.begin(), fused.sources.end());
    program.operands.insert(program.operands.end(), fused.targets.begin(), fused.targets.end());
    program.dependencies.insert(program.dependencies.end(), needed.begin(), needed.end());
    program.lanes.push_back({lane, 1});
    program.steps.push_back(step);
  }

  using PassKey = std::array<std::uint32_t, 7>;  // stage, chunks, value, first source

  const Program& plain_;
  ValueGraph graph_;
  HazardTracker hazards_;
  std::map<PassKey, std::size_t> passes_;
  std::vector<Fused> fused_;
};

}  // namespace

LoweringRules rules_for(DataType type) {
  return {accumulates_in_itself(type) ? LoweringRules::Chains::fold : LoweringRules::Chains::keep};
}

Program lower(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules) {
  return Lowering(plain, shape, in_place, rules).run();
}

}  // namespace seto

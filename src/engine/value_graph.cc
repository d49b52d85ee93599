#include "src/engine/value_graph.h"

#include <algorithm>
#include <numeric>

#include "src/plan/chunk_map.h"

namespace seto {

ValueGraph::ValueGraph(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules)
    : plain_(plain),
      rules_(rules),
      table_(shape, plain.rank, in_place),
      order_(plain.steps.size()),
      defined_(plain.steps.size(), kNoValue),
      reads_(plain.steps.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Step& left = plain.steps[a];
    const Step& right = plain.steps[b];
    return left.stage != right.stage ? left.stage < right.stage : left.order < right.order;
  });
  for (const std::uint32_t step : order_) follow(step);
  mark_live_out(shape);
  aliases_.resize(values_.size());
  for (std::uint32_t id = 0; id < values_.size(); ++id) join_aliases(id);
  for (std::uint32_t id = 0; id < values_.size(); ++id) decide(id);
  mark_stored();
}

void ValueGraph::follow(std::uint32_t step_index) {
  const Step& step = plain_.steps[step_index];
  for (const Operand& source : plain_.sources(step)) {
    const ValueRead read = source.space == Space::channel ? ValueRead{} : resolve(source, step.count);
    reads_[step_index].push_back(read);
    if (read.value != kNoValue) values_[read.value].readers.push_back(step_index);
  }
  if (plain_.targets(step).front().space != Space::channel) define(step_index);
}

ValueRead ValueGraph::resolve(const Operand& source, std::uint32_t count) {
  ValueRead read;
  bool one_value = true;
  bool untouched = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = table_.id(source.space, source.index + i);
    if (versions_.size() <= place) versions_.resize(place + 1);
    const Version& version = versions_[place];
    if (i == 0) read.value = version.value;
    one_value = one_value && version.value == read.value && version.offset == i;
    untouched = untouched && version.value == kNoValue;
  }
  if (read.value != kNoValue && one_value && values_[read.value].count == count) return read;
  for (std::uint32_t i = 0; i < count; ++i) {  // parts of values, or several values, must be in memory
    const std::uint32_t value = versions_[table_.id(source.space, source.index + i)].value;
    if (value != kNoValue) values_[value].stored = true;
  }
  return {kNoValue, untouched};
}

void ValueGraph::define(std::uint32_t step_index) {
  const Step& step = plain_.steps[step_index];
  const Operand& target = plain_.targets(step).front();
  const auto id = static_cast<std::uint32_t>(values_.size());
  Value value;
  value.step = step_index;
  value.place = target;
  value.count = step.count;
  values_.push_back(std::move(value));
  defined_[step_index] = id;
  for (std::uint32_t i = 0; i < step.count; ++i) {
    const std::uint32_t place = table_.id(target.space, target.index + i);
    if (versions_.size() <= place) versions_.resize(place + 1);
    versions_[place] = {id, i};
  }
}

void ValueGraph::mark_live_out(const Shape& shape) {
  for (std::uint32_t index = 0; index < output_chunks(shape, plain_.rank); ++index) {
    const std::uint32_t place = table_.id(Space::output, index);
    if (place < versions_.size() && versions_[place].value != kNoValue) values_[versions_[place].value].live_out = true;
  }
}

// A copy, a finish or a round of a value that is made in the same stage needs no pass of its own: the first pass stores twice.
void ValueGraph::join_aliases(std::uint32_t id) {
  Value& copy = values_[id];
  const Step& step = plain_.steps[copy.step];
  if (step.verb != Verb::copy && step.verb != Verb::finish && step.verb != Verb::round) return;
  const ValueRead& read = reads_[copy.step].front();
  if (read.value == kNoValue) return;
  const std::uint32_t original = values_[read.value].alias_of == kNoValue ? read.value : values_[read.value].alias_of;
  Value& source = values_[original];
  const Step& made_by = plain_.steps[source.step];
  const bool computed = made_by.verb == Verb::reduce || made_by.verb == Verb::receive;
  if (!computed || made_by.stage != step.stage) return;
  if (step.verb != Verb::copy) {
    // From here on only the changed value exists.
    const Value& before = values_[read.value];
    const bool as_made = read.value == original || plain_.steps[before.step].verb == Verb::finish;
    if (!as_made || before.readers.size() != 1 || before.live_out || before.stored || source.rounds) return;
    (step.verb == Verb::finish ? source.finishes : source.rounds) = true;
  }
  copy.alias_of = original;
  aliases_[original].push_back(id);
}

bool ValueGraph::alone_read_by(const Value& value, Verb verb) const {
  return value.readers.size() == 1 && !value.live_out && !value.stored && !value.finishes && !value.rounds &&
         value.alias_of == kNoValue && plain_.steps[value.readers.front()].verb == verb &&
         plain_.steps[value.readers.front()].stage == plain_.steps[value.step].stage;
}

void ValueGraph::decide(std::uint32_t id) {
  Value& value = values_[id];
  const Verb verb = plain_.steps[value.step].verb;
  if (verb == Verb::receive) {
    value.inlined = alone_read_by(value, Verb::reduce);
  } else if (verb == Verb::scale) {
    value.inlined = !value.live_out && !value.stored;  // recomputed by each reader; a multiplication costs nothing beside a pass
  } else if (verb == Verb::reduce) {
    const std::uint32_t leftmost = reads_[value.step].front().value;
    value.sources = plain_.steps[value.step].source_count;
    if (leftmost != kNoValue && values_[leftmost].inlined) value.sources += values_[leftmost].sources - 1;
    if (rules_.chains != LoweringRules::Chains::fold || !alone_read_by(value, Verb::reduce)) return;
    const std::uint32_t reader = value.readers.front();
    value.inlined = reads_[reader].front().value == id &&  // only as the leftmost: never re-associated
                    value.sources + plain_.steps[reader].source_count - 1 <= kMostSources;
  }
}

void ValueGraph::mark_stored() {
  std::vector<std::uint32_t> sends(plain_.steps.size(), 0);  // in the pass of a step
  for (Value& value : values_) {
    if (value.inlined) continue;
    const Value& made = value.alias_of == kNoValue ? value : values_[value.alias_of];
    for (const std::uint32_t reader : value.readers) {
      const Step& step = plain_.steps[reader];
      const bool sent_as_made = step.verb == Verb::send && step.stage == plain_.steps[made.step].stage;
      const bool alias_made = defined_[reader] != kNoValue && values_[defined_[reader]].alias_of != kNoValue;
      if (!sent_as_made && !alias_made) value.stored = true;
      if (sent_as_made) ++sends[made.step];
    }
  }
  // A pass with more targets than a step can have is cut, and what follows reads memory.
  for (Value& value : values_)
    if (sends[value.step] >= kMostTargets) value.stored = true;
}

}  // namespace seto

#include "src/plan/builder.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/plan/chunk_map.h"
#include "src/plan/scratch.h"

namespace seto {
namespace {

std::vector<Rank> others(const Group& group, int index) {
  std::vector<Rank> ranks;
  for (int i = 0; i < group.size(); ++i)
    if (i != index) ranks.push_back(group[i]);
  return ranks;
}

}  // namespace

Builder::Builder(const Shape& shape, Rank rank, InPlace in_place)
    : shape_(shape),
      rank_(rank),
      codes_(shape.codec != 0 && shape.coded_tiers != 0),
      temporaries_(logical_chunks(shape)),
      homes_(logical_chunks(shape), Home::untouched),
      stages_(logical_chunks(shape), 0),
      in_place_(in_place),
      hazards_(shape, rank, in_place) {}

Range Builder::everything() const { return {0, logical_chunks(shape_)}; }

Range Builder::part_of(Rank owner) const { return {static_cast<std::uint32_t>(owner) * shape_.pieces, shape_.pieces}; }

Range Builder::part_of(Rank from, Rank to) const { return part_of(from * shape_.ranks + to); }

// ---- cells: where the current value of each cell is ----

Builder::Home Builder::home_of(std::uint32_t chunk) const {
  if (homes_[chunk] != Home::untouched) return homes_[chunk];
  return input_index(shape_, rank_, chunk) ? Home::input : Home::nothing;
}

std::uint32_t Builder::place_index(Home home, std::uint32_t chunk) const {
  SETO_CHECK(home == Home::input || home == Home::output || home == Home::scratch);
  if (home == Home::input) return *input_index(shape_, rank_, chunk);
  if (home == Home::output) return *output_index(shape_, rank_, chunk);
  return chunk;
}

bool Builder::contiguous(Home home, Range range) const {
  const std::uint32_t first = place_index(home, range.first);
  return place_index(home, range.first + range.count - 1) == first + range.count - 1;
}

Builder::Place Builder::write_place(Range range) const {
  const auto first = output_index(shape_, rank_, range.first);
  const auto last = output_index(shape_, rank_, range.first + range.count - 1);
  if (first && last && *last == *first + range.count - 1) return {Space::output, *first};
  return {Space::scratch, range.first};
}

void Builder::set_home(Range range, Place place) {
  const Home home = place.space == Space::output ? Home::output : Home::scratch;
  std::fill_n(homes_.begin() + range.first, range.count, home);
}

void Builder::set_stage(Range range, std::uint32_t stage) {
  std::fill_n(stages_.begin() + range.first, range.count, static_cast<std::uint16_t>(stage));
}

std::uint32_t Builder::stage_of(Range range) const {
  return *std::max_element(stages_.begin() + range.first, stages_.begin() + range.first + range.count);
}

bool Builder::unscaled(Home home) const {
  return home == Home::input && shape_.finish == Finish::scale_contributions && reduces(shape_.collective);
}

Builder::Place Builder::settle(Range range) {
  const Home first = home_of(range.first);
  bool uniform = first != Home::nothing;
  for (std::uint32_t i = 1; uniform && i < range.count; ++i) uniform = home_of(range.first + i) == first;
  if (uniform && contiguous(first, range) && !unscaled(first)) {
    const Space space = first == Home::input ? Space::input : first == Home::output ? Space::output : Space::scratch;
    return {space, place_index(first, range.first)};
  }
  const Place target = write_place(range);
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint32_t chunk = range.first + i;
    const Home home = home_of(chunk);
    SETO_CHECK(home != Home::nothing);  // the author moves a cell that this rank never received
    const Space space = home == Home::input ? Space::input : home == Home::output ? Space::output : Space::scratch;
    const Place from{space, place_index(home, chunk)};
    const Place to{target.space, target.index + i};
    const bool in_output_already =
        home == Home::input && in_place_ == InPlace::yes && to.space == Space::output && !unscaled(home);
    if (in_output_already || (from.space == to.space && from.index == to.index)) continue;
    local(unscaled(home) ? Verb::scale : Verb::copy, {&from, 1}, to, {chunk, 1}, stages_[chunk]);
  }
  set_home(range, target);
  return target;
}

Builder::Place Builder::temporary(std::uint32_t count) {
  temporaries_ += count;
  return {Space::scratch, temporaries_ - count};
}

// ---- statements ----

void Builder::copy(Rank from, Rank to, Range range) {
  if (from == to || range.count == 0) return;
  if (rank_ == from) send({&to, 1}, 0, range);
  if (rank_ != to) return;
  const Place place = write_place(range);
  receive(from, {&to, 1}, 0, range, place);
  set_home(range, place);
  set_stage(range, round_ + 1);
}

void Builder::multicast(const Group& group, int from, Range range) {
  if (!group.includes_built() || group.size() == 1 || range.count == 0) return;
  const std::vector<Rank> receivers = others(group, from);
  const std::uint8_t tag = receivers.size() > 1 ? group.tag() : std::uint8_t{0};
  if (group.built_index() == from) return send(receivers, tag, range);
  const Place place = write_place(range);
  receive(group[from], receivers, tag, range, place);
  set_home(range, place);
  set_stage(range, round_ + 1);
}

void Builder::reduce(Rank to, std::span<const Rank> sources, Range range) {
  if (range.count == 0) return;
  if (rank_ != to) {
    if (std::find(sources.begin(), sources.end(), rank_) != sources.end()) send({&to, 1}, 0, range);
    return;
  }
  std::vector<Place> places;
  Place own{};
  std::uint32_t stage = 0;
  if (std::find(sources.begin(), sources.end(), rank_) != sources.end()) {
    own = settle(range);
    stage = stage_of(range);
  }
  for (const Rank source : sources) {
    places.push_back(source == rank_ ? own : temporary(range.count));
    if (source == rank_) continue;
    receive(source, {&to, 1}, 0, range, places.back());
    stage = std::max(stage, round_ + 1);
  }
  fold(places, range, stage);
}

void Builder::reduce_all(const Group& group, int to, Range range) {
  if (!group.includes_built() || group.size() == 1 || range.count == 0) return;
  const Rank owner = group[to];
  if (rank_ == owner) return reduce(owner, group.members(), range);
  send({&owner, 1}, 0, range);
}

// The other members know only what this rank's message says. So this rank folds the values of the messages too, and all members
// get the same result.
void Builder::exchange(const Group& group, Range range) {
  if (!group.includes_built() || group.size() == 1 || range.count == 0) return;
  const std::uint8_t tag = group.size() > 2 ? group.tag() : std::uint8_t{0};
  if (codes_) rounded(range);
  send(others(group, group.built_index()), tag, range);
  const Place own = settle(range);
  std::vector<Place> places;
  for (int member = 0; member < group.size(); ++member) {
    const Rank source = group[member];
    places.push_back(source == rank_ ? own : temporary(range.count));
    if (source != rank_) receive(source, others(group, member), tag, range, places.back());
  }
  fold(places, range, std::max(stage_of(range), round_ + 1));
}

void Builder::exchange(Rank a, Rank b, Range range) {
  if ((rank_ != a && rank_ != b) || a == b || range.count == 0) return;
  const Rank peer = rank_ == a ? b : a;
  if (codes_) rounded(range);
  send({&peer, 1}, 0, range);
  const Place own = settle(range);
  const Place theirs = temporary(range.count);
  receive(peer, {&rank_, 1}, 0, range, theirs);
  const Place places[2] = {rank_ == a ? own : theirs, rank_ == a ? theirs : own};
  fold(places, range, std::max(stage_of(range), round_ + 1));
}

void Builder::finish(Rank at, Range range) {
  if (rank_ != at || shape_.finish != Finish::divide_result || range.count == 0) return;
  const Place from = settle(range);
  const Place to = write_place(range);
  local(Verb::finish, {&from, 1}, to, range, stage_of(range));
  set_home(range, to);
}

void Builder::round(Rank at, Range range) {
  if (rank_ == at && codes_ && range.count > 0) rounded(range);
}

// The round of the call, not that of the value: the encoded bytes exist only in the pass that makes them.
void Builder::rounded(Range range) {
  const Place from = settle(range);
  const Place to = write_place(range);
  local(Verb::round, {&from, 1}, to, range, round_);
  set_home(range, to);
  set_stage(range, round_);
}

void Builder::at_tier(int tier) { codes_ = shape_.codec != 0 && (shape_.coded_tiers >> tier & 1) != 0; }

Program Builder::build() && {
  deliver_own();
  Program program;
  program.rank = rank_;
  program.scratch_chunks = temporaries_;
  program.fan = fan();
  program.channels = std::move(channels_);
  program.receivers = std::move(receivers_);
  for (const std::uint32_t length : lane_lengths_) {
    const std::uint32_t first = program.lanes.empty() ? 0 : program.lanes.back().first_step + program.lanes.back().step_count;
    program.lanes.push_back({first, length});
  }
  std::vector<const Pending*> by_lane(steps_.size());
  std::vector<std::uint32_t> filled(program.lanes.size(), 0);
  for (const Pending& pending : steps_) by_lane[program.lanes[pending.lane].first_step + filled[pending.lane]++] = &pending;
  for (const Pending* pending : by_lane) {  // pools in the order of the steps, so that a lane's data is contiguous
    Step step = pending->step;
    step.first_operand = static_cast<std::uint32_t>(program.operands.size());
    program.operands.insert(program.operands.end(), pending->operands.begin(), pending->operands.end());
    step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    step.dependency_count = static_cast<std::uint32_t>(pending->dependencies.size());
    program.dependencies.insert(program.dependencies.end(), pending->dependencies.begin(), pending->dependencies.end());
    program.steps.push_back(step);
  }
  compact_scratch(program);
  return program;
}

void Builder::deliver_own() {
  const std::uint32_t outputs = output_chunks(shape_, rank_);
  for (std::uint32_t index = 0; index < outputs;) {
    const std::uint32_t chunk = chunk_of_output(shape_, rank_, index);
    const Home home = home_of(chunk);
    std::uint32_t count = 1;  // consecutive outputs that one step can copy
    while (index + count < outputs && chunk_of_output(shape_, rank_, index + count) == chunk + count &&
           home_of(chunk + count) == home && stages_[chunk + count] == stages_[chunk])
      ++count;
    const bool in_output_already = home == Home::output || (home == Home::input && in_place_ == InPlace::yes && !unscaled(home));
    if (!in_output_already) {
      SETO_CHECK(home != Home::nothing);  // an output that no statement produced
      const Place from{home == Home::input ? Space::input : Space::scratch, place_index(home, chunk)};
      const Verb verb = unscaled(home) ? Verb::scale : Verb::copy;
      local(verb, {&from, 1}, {Space::output, index}, {chunk, count}, stages_[chunk]);
    }
    index += count;
  }
}

std::uint32_t Builder::fan() const {
  auto active = activity_;
  std::sort(active.begin(), active.end());
  active.erase(std::unique(active.begin(), active.end()), active.end());
  std::uint32_t most = 0;
  std::uint32_t now = 0;
  for (std::size_t i = 0; i < active.size(); ++i) {
    now = i > 0 && active[i].first == active[i - 1].first ? now + 1 : 1;
    most = std::max(most, now);
  }
  return most;
}

// ---- steps ----

std::uint32_t Builder::lane(LaneKey key) {
  const auto [entry, added] = lanes_.try_emplace(key, static_cast<std::uint32_t>(lane_lengths_.size()));
  if (added) lane_lengths_.push_back(0);
  return entry->second;
}

std::uint32_t Builder::open_channel(Rank sender, std::span<const Rank> receivers, std::uint8_t group, Range range) {
  Channel channel;
  channel.sender = sender;
  channel.first_receiver = static_cast<std::uint32_t>(receivers_.size());
  channel.receiver_count = static_cast<std::uint32_t>(receivers.size());
  channel.group = group;
  channel.port = ports_[{sender, group > 0 ? -static_cast<int>(group) : receivers.front()}]++;
  channel.chunk = range.first;
  channel.count = range.count;
  channel.stage = static_cast<std::uint16_t>(round_);
  channel.coded = codes_;
  receivers_.insert(receivers_.end(), receivers.begin(), receivers.end());
  channels_.push_back(channel);
  for (const Rank receiver : receivers) {
    if (sender == rank_) activity_.emplace_back(round_, receiver);
    if (receiver == rank_) activity_.emplace_back(round_, sender);
  }
  return static_cast<std::uint32_t>(channels_.size() - 1);
}

void Builder::send(std::span<const Rank> receivers, std::uint8_t group, Range range) {
  const Place from = settle(range);
  SETO_CHECK(stage_of(range) <= round_);  // the author's round is below the hops of the value
  const std::uint32_t channel = open_channel(rank_, receivers, group, range);
  Step step;
  step.verb = Verb::send;
  step.stage = static_cast<std::uint16_t>(round_);
  step.chunk = range.first;
  step.count = range.count;
  const Operand operands[2] = {{from.space, false, from.index}, {Space::channel, false, channel}};
  emit({1, group > 0 ? -static_cast<int>(group) : receivers.front()}, step, operands);
}

void Builder::receive(Rank sender, std::span<const Rank> receivers, std::uint8_t group, Range range, Place into) {
  const std::uint32_t channel = open_channel(sender, receivers, group, range);
  Step step;
  step.verb = Verb::receive;
  step.stage = static_cast<std::uint16_t>(round_ + 1);
  step.chunk = range.first;
  step.count = range.count;
  const Operand operands[2] = {{Space::channel, false, channel}, {into.space, false, into.index}};
  emit({2, sender}, step, operands);
}

void Builder::local(Verb verb, std::span<const Place> sources, Place target, Range range, std::uint32_t stage) {
  Step step;
  step.verb = verb;
  step.stage = static_cast<std::uint16_t>(stage);
  step.chunk = range.first;
  step.count = range.count;
  std::vector<Operand> operands;
  for (const Place& source : sources) operands.push_back({source.space, false, source.index});
  operands.push_back({target.space, false, target.index});
  emit({0, 0}, step, operands);
}

// More sources than a step can have are folded from the left, a step at a time. Sums on the way have places of their own, because
// the target may hold a source that is still to come.
void Builder::fold(std::span<const Place> sources, Range range, std::uint32_t stage) {
  std::vector<Place> left(sources.begin(), sources.end());
  while (left.size() > kMostSources) {
    const Place sum = temporary(range.count);
    local(Verb::reduce, std::span(left).first(kMostSources), sum, range, stage);
    left.erase(left.begin() + 1, left.begin() + kMostSources);
    left.front() = sum;
  }
  const Place target = write_place(range);
  local(Verb::reduce, left, target, range, stage);
  set_home(range, target);
  set_stage(range, stage);
}

void Builder::emit(LaneKey lane_key, Step step, std::span<const Operand> operands) {
  const std::uint32_t at = lane(lane_key);
  step.order = order_++;
  step.source_count = static_cast<std::uint16_t>(operands.size() - 1);
  step.target_count = 1;
  for (const Operand& source : operands.first(operands.size() - 1)) hazards_.read(source.space, source.index, step.count);
  hazards_.write(operands.back().space, operands.back().index, step.count);
  Pending pending{step, at, {operands.begin(), operands.end()}, hazards_.take({at, lane_lengths_[at]})};
  ++lane_lengths_[at];
  steps_.push_back(std::move(pending));
}

}  // namespace seto

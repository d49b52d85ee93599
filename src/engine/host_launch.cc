#include "src/engine/host_launch.h"

#include <algorithm>
#include <cstring>

#include "src/engine/lending.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr std::size_t kAlignment = 64;
// Below it a copy into a slot costs less than waiting until the other has read.
constexpr std::uint64_t kWorthLending = 16 << 10;

std::size_t padded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<std::unique_ptr<HostLaunch>> HostLaunch::bind(const BindRequest& request, Circle& circle) {
  std::unique_ptr<HostLaunch> launch(new HostLaunch());
  const Program& program = *request.program;
  launch->rank_ = program.rank;
  launch->order_ = request.order;
  launch->stages_ = program.stages();
  launch->element_size_ = size_of(request.type);
  launch->slice_elements_ = std::max<std::uint64_t>(1, request.tuning.slice_elements);
  launch->slices_ = request.layout->slices(launch->slice_elements_);
  const std::uint64_t slice = std::min(launch->slice_elements_, request.layout->longest());
  launch->piece_stride_ = padded(slice * launch->element_size_);
  launch->scratch_stride_ = padded(request.layout->longest() * launch->element_size_);
  launch->reduce_ = reduce_function(request.type, request.op);
  Lending lending(program, request.shape, request.in_place);
  for (const Lane& lane : program.lanes) {
    if (lane.step_count != 1) return failure(Code::internal, "the host engine runs lowered programs: one step a lane");
    SETO_TRY(launch->bind_step(request, program.steps[lane.first_step], circle, lending));
  }
  if (program.scratch_chunks > 0)
    for (auto& scratch : launch->scratch_) {
      const std::size_t size = launch->scratch_stride_ * program.scratch_chunks;
      scratch.reset(static_cast<std::byte*>(::operator new(size, kScratchAlignment, std::nothrow)));
      if (scratch == nullptr) return failure(Code::unavailable, "out of memory: %zu bytes of scratch", size);
    }
  for (auto& done : launch->done_) done.assign(launch->steps_.size(), 0);
  return launch;
}

Status HostLaunch::bind_step(const BindRequest& request, const Step& step, Circle& circle, Lending& lending) {
  const Program& program = *request.program;
  if (step.verb == Verb::encode || step.verb == Verb::decode)
    return failure(Code::invalid_usage, "this build has no codecs yet: plans with encode or decode cannot run");
  if (step.source_count > kMaxReduceSources || step.target_count > kMaxReduceTargets)
    return failure(Code::invalid_usage, "a step with %u sources and %u targets is beyond the kernels' limits", step.source_count,
                   step.target_count);
  BoundStep bound;
  bound.stage = step.stage;
  bound.pieces = step.count;
  bound.source_count = step.source_count;
  bound.target_count = step.target_count;
  bound.first_source = static_cast<std::uint32_t>(sources_.size());
  bound.first_target = static_cast<std::uint32_t>(targets_.size());
  bound.divisor = step.finishes && is_integer(request.type) ? static_cast<std::uint32_t>(request.shape.ranks) : 1;
  const auto sources = program.sources(step);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].scaled) bound.scaled |= std::uint64_t{1} << i;
  bound.moves = step.source_count == 1 && bound.scaled == 0 && bound.divisor == 1;
  for (const Operand& source : sources) SETO_TRY(bind_source(request, source, circle));
  for (const Operand& target : program.targets(step)) SETO_TRY(bind_target(request, target, circle));
  bound.first_piece = static_cast<std::uint32_t>(lengths_.size());
  bound.first_offset = static_cast<std::uint32_t>(offsets_.size());
  bind_offsets(request, step);
  bind_lending(request, step, lending);
  bound.first_dependency = static_cast<std::uint32_t>(dependencies_.size());
  bound.dependency_count = step.dependency_count;
  for (const Dependency& dependency : program.dependencies_of(step)) dependencies_.push_back(dependency);
  steps_.push_back(bound);
  return {};
}

StreamGeometry HostLaunch::geometry_of(const BindRequest& request, const Channel& channel) const {
  const std::uint64_t piece = std::min(slice_elements_, request.layout->longest()) * element_size_;
  const std::uint64_t size = channel.count == 1 ? piece : piece_stride_ * channel.count;
  constexpr std::uint64_t kMost =
      ~std::uint32_t{0};  // no transport takes a slot of this size: it says so, instead of a wrapped one
  return {static_cast<std::uint32_t>(std::min(size, kMost)), request.tuning.depth, slices_, request.digest};
}

Status HostLaunch::bind_source(const BindRequest& request, const Operand& operand, Circle& circle) {
  Source source{nullptr, operand.space, -1};
  if (operand.space == Space::channel) {
    const Channel& channel = request.program->channels[operand.index];
    const StreamAddress address{static_cast<std::uint32_t>(channel.sender), channel.group, channel.port};
    SETO_ASSIGN(auto stream, circle.open_receive(address, geometry_of(request, channel)));
    source.stream = stream.get();
    source.peer = channel.sender;
    source.borrows = stream->borrows();
    receives_.push_back(std::move(stream));
  }
  sources_.push_back(source);
  return {};
}

Status HostLaunch::bind_target(const BindRequest& request, const Operand& operand, Circle& circle) {
  Target target{nullptr, operand.space, -1};
  if (operand.space == Space::channel) {
    const Channel& channel = request.program->channels[operand.index];
    const StreamAddress address{static_cast<std::uint32_t>(channel.sender), channel.group, channel.port};
    std::vector<std::uint32_t> receivers;
    for (const Rank receiver : request.program->receivers_of(channel)) receivers.push_back(static_cast<std::uint32_t>(receiver));
    SETO_ASSIGN(auto stream, circle.open_send(address, receivers, geometry_of(request, channel)));
    target.stream = stream.get();
    target.peer = static_cast<Rank>(receivers.front());
    sends_.push_back(std::move(stream));
  }
  targets_.push_back(target);
  return {};
}

void HostLaunch::bind_offsets(const BindRequest& request, const Step& step) {
  const Program& program = *request.program;
  const Layout& layout = *request.layout;
  const auto offset = [&](const Operand& operand, std::uint32_t piece) -> std::uint64_t {
    switch (operand.space) {
      case Space::input:
        return layout.input_offset(operand.index + piece) * element_size_;
      case Space::output:
        return layout.output_offset(operand.index + piece) * element_size_;
      case Space::scratch:
        return (operand.index + piece) * scratch_stride_;
      case Space::channel:
        return piece * piece_stride_;
    }
    return 0;
  };
  for (std::uint32_t piece = 0; piece < step.count; ++piece) {
    lengths_.push_back(layout.length(step.chunk + piece));
    for (const Operand& source : program.sources(step)) offsets_.push_back(offset(source, piece));
    for (const Operand& target : program.targets(step)) offsets_.push_back(offset(target, piece));
  }
}

// Of the step whose targets were bound last.
void HostLaunch::bind_lending(const BindRequest& request, const Step& step, Lending& lending) {
  const std::uint64_t bytes = request.layout->length(step.chunk) * element_size_;
  if (bytes < kWorthLending) return;
  const std::optional<Operand> place = lending.place_of(step);
  if (!place) return;
  const std::uint64_t at =
      place->space == Space::input ? request.layout->input_offset(place->index) : request.layout->output_offset(place->index);
  for (std::size_t i = targets_.size() - step.target_count; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    if (target.stream == nullptr || !target.stream->lends()) continue;
    target.lends = true;
    target.space = place->space;
    target.lent_offset = at * element_size_;
    lending_.push_back(target.stream);
  }
}

std::byte* HostLaunch::memory(Space space, const Operands& operands) const {
  // The input is only ever a source; one pointer type keeps the loop below free of branches.
  if (space == Space::input) return static_cast<std::byte*>(const_cast<void*>(operands.input));
  if (space == Space::output) return static_cast<std::byte*>(operands.output);
  return scratch_[operands.operation % 2].get();
}

bool HostLaunch::advance(Run& run, std::uint32_t steps) {
  if (run.finished) return true;
  const bool done = order_ == StepOrder::skewed ? advance_skewed(run, steps) : advance_ready(run, steps);
  run.finished = done && all_taken(run.operands.operation);
  return run.finished;
}

bool HostLaunch::all_taken(std::uint64_t operation) const {
  for (SendStream* stream : lending_)
    if (!stream->taken(operation)) return false;
  return true;
}

bool HostLaunch::withdraw(const Run& run) {
  bool all = true;
  for (SendStream* stream : lending_) all &= stream->revoke(run.operands.operation);
  return all;
}

bool HostLaunch::advance_skewed(Run& run, std::uint32_t steps) {
  const std::uint64_t rounds = slices_ + stages_ - 1;
  const auto lanes = static_cast<std::uint32_t>(steps_.size());
  for (; run.round < rounds; ++run.round, run.lane = 0) {
    for (; run.lane < lanes; ++run.lane) {
      const BoundStep& step = steps_[run.lane];
      if (run.round < step.stage || run.round - step.stage >= slices_) continue;
      if (steps == 0 || !try_step(step, run.operands, run.round - step.stage)) return false;
      --steps;
    }
  }
  return true;
}

bool HostLaunch::advance_ready(Run& run, std::uint32_t steps) {
  std::vector<std::uint64_t>& done = done_[run.operands.operation % 2];
  if (run.round == 0) {  // the first call of this operation
    std::fill(done.begin(), done.end(), 0);
    run.round = 1;
  }
  for (bool moved = true; moved;) {
    moved = false;
    bool all = true;
    for (std::uint32_t lane = 0; lane < steps_.size(); ++lane) {
      if (done[lane] == slices_) continue;
      all = false;
      const BoundStep& step = steps_[lane];
      bool ready = steps > 0;
      for (std::uint32_t d = 0; ready && d < step.dependency_count; ++d) {
        const Dependency& dependency = dependencies_[step.first_dependency + d];
        ready = dependency.steps == 0 || done[dependency.lane] > done[lane];
      }
      run.lane = lane;
      if (!ready || !try_step(step, run.operands, done[lane])) continue;
      ++done[lane];
      --steps;
      moved = true;
    }
    if (all) return true;
  }
  return false;
}

bool HostLaunch::try_step(const BoundStep& step, const Operands& operands, std::uint64_t slice) {
  const Mark mark = mark_of(operands.operation, slice);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const Source& source = sources_[step.first_source + i];
    if (source.stream == nullptr) continue;
    fronts_[i] = source.stream->front(mark);
    if (fronts_[i] == nullptr) return false;
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const Target& target = targets_[step.first_target + i];
    if (target.stream == nullptr) continue;
    if (target.lends) {
      if (!target.stream->lend(mark, memory(target.space, operands) + target.lent_offset, slice_elements_ * element_size_))
        return false;
      continue;
    }
    slots_[i] = target.stream->acquire(mark);
    if (slots_[i] == nullptr) return false;
  }
  if (!hold(step, mark)) return false;
  perform(step, operands, slice);
  for (std::uint32_t i = 0; i < step.target_count; ++i)
    if (SendStream* stream = targets_[step.first_target + i].stream) stream->commit(mark);
  for (std::uint32_t i = 0; i < step.source_count; ++i)
    if (ReceiveStream* stream = sources_[step.first_source + i].stream) stream->release(mark);
  return true;
}

bool HostLaunch::hold(const BoundStep& step, Mark mark) {
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const Source& source = sources_[step.first_source + i];
    if (!source.borrows || source.stream->hold(mark)) continue;
    for (std::uint32_t held = 0; held < i; ++held)
      if (const Source& other = sources_[step.first_source + held]; other.borrows) other.stream->let_go(mark);
    return false;
  }
  return true;
}

void HostLaunch::perform(const BoundStep& step, const Operands& operands, std::uint64_t slice) {
  const void* sources[kMaxReduceSources];
  ReduceTarget targets[kMaxReduceTargets];
  const std::uint64_t begin = slice * slice_elements_;
  const std::uint64_t* offset = &offsets_[step.first_offset];
  for (std::uint32_t piece = 0; piece < step.pieces; ++piece) {
    const std::uint64_t length = lengths_[step.first_piece + piece];
    const std::uint64_t count = length > begin ? std::min(slice_elements_, length - begin) : 0;
    for (std::uint32_t i = 0; i < step.source_count; ++i, ++offset) {
      const Source& source = sources_[step.first_source + i];
      sources[i] =
          source.stream != nullptr ? fronts_[i] + *offset : memory(source.space, operands) + *offset + begin * element_size_;
    }
    std::uint32_t written = 0;
    for (std::uint32_t i = 0; i < step.target_count; ++i, ++offset) {
      const Target& target = targets_[step.first_target + i];
      if (target.lends) continue;
      targets[written].data =
          target.stream != nullptr ? slots_[i] + *offset : memory(target.space, operands) + *offset + begin * element_size_;
      targets[written].store = target.stream != nullptr        ? operands.slots
                               : target.space == Space::output ? operands.results
                                                               : Store::cached;
      ++written;
    }
    if (count == 0 || written == 0) continue;
    if (step.moves) {
      if (sources[0] != targets[0].data || written > 1) copy_bytes(sources[0], targets, written, count * element_size_);
    } else {
      const void* scalar = step.scaled != 0 ? operands.scalar : nullptr;
      reduce_({sources, step.source_count, targets, written, count, step.scaled, scalar, step.divisor});
    }
  }
}

std::string HostLaunch::waits_at(const Run& run, Rank& peer) const {
  peer = -1;
  if (run.lane >= steps_.size()) return "between steps";
  const BoundStep& step = steps_[run.lane];
  const std::uint64_t slice = order_ == StepOrder::skewed ? run.round - step.stage : done_[run.operands.operation % 2][run.lane];
  const Mark mark = mark_of(run.operands.operation, slice);
  const std::string where = "step " + std::to_string(run.lane) + " of " + std::to_string(steps_.size()) + ", slice " +
                            std::to_string(slice) + " of " + std::to_string(slices_);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const Source& source = sources_[step.first_source + i];
    if (source.stream == nullptr || source.stream->front(mark) != nullptr) continue;
    peer = source.peer;
    return where + " waits for data of rank " + std::to_string(peer);
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const Target& target = targets_[step.first_target + i];
    if (target.stream == nullptr || target.stream->acquire(mark) != nullptr) continue;
    peer = target.peer;
    return where + " waits for rank " + std::to_string(peer) + " to take earlier data";
  }
  return where;
}

}  // namespace seto

#include "src/engine/host_executor.h"

#include <algorithm>
#include <utility>

namespace seto {
Result<std::unique_ptr<HostExecutor>> HostExecutor::open(BoundProgram program, StepOrder order, PeerGroup& peer_group) {
  if (!program.skewed)
    return failure(Code::internal,
                   "rank %d: the host executor runs lowered programs: one step a lane, lanes in the order of stages",
                   program.rank);
  std::unique_ptr<HostExecutor> executor(new HostExecutor(std::move(program), order));
  SETO_ASSIGN(executor->streams_, HostStreams::open(executor->program_, peer_group));
  SETO_ASSIGN(executor->kernels_, StepKernels::create(executor->program_));
  executor->placing_ = std::make_unique<HostPlacing>(executor->program_, executor->streams_);
  if (order == StepOrder::skewed) executor->short_ = ShortSteps::create(executor->program_, executor->streams_);
  SETO_TRY(executor->allocate());
  return executor;
}

Status HostExecutor::allocate() {
  for (auto& done : done_) done.assign(program_.steps.size(), 0);
  if (program_.scratch_size == 0) return {};
  for (auto& scratch : scratch_) {
    scratch.reset(static_cast<std::byte*>(::operator new(program_.scratch_size, kScratchAlignment, std::nothrow)));
    if (scratch == nullptr) return failure(Code::unavailable, "out of memory: %zu bytes of scratch", program_.scratch_size);
  }
  return {};
}

HostExecutor::Frame HostExecutor::frame_of(const Operands& operands) const {
  // The input is only ever a source. One pointer type keeps the loops below free of branches.
  auto* const input = static_cast<std::byte*>(const_cast<void*>(operands.input));
  return {operands.operation,
          {input, static_cast<std::byte*>(operands.output), scratch_[operands.operation % kWindow].get(), nullptr},
          {Store::cached, operands.results, Store::cached, operands.slots},
          {operands.scalar, static_cast<std::byte*>(operands.residual)}};
}

bool HostExecutor::advance(Run& run, std::uint32_t steps) {
  if (run.finished) return true;
  if (short_ != nullptr) return run.finished = advance_short(run, steps);
  std::uint32_t left = steps;
  const bool done = order_ == StepOrder::skewed ? advance_skewed(run, left) : advance_ready(run, left);
  run.finished = done && all_taken(run.operands.operation);
  return run.finished;
}

bool HostExecutor::all_taken(std::uint64_t operation) const {
  return std::all_of(streams_.lending.begin(), streams_.lending.end(),
                     [&](const HostTarget& target) { return target.lending->taken(operation); });
}

bool HostExecutor::withdraw(const Run& run) {
  bool all = true;
  placing_->withdraw(run.operands.operation);
  for (const HostTarget& target : streams_.lending) all &= target.lending->revoke(run.operands.operation);
  return all;
}

std::uint64_t HostExecutor::slices_done(const Run& run, std::uint32_t lane) const {
  if (order_ == StepOrder::readiness) return done_of(run)[lane];
  if (program_.slices == 1) return lane < run.lane ? 1 : 0;
  return SkewedOrder::slices_before(run.round, program_.steps[lane].stage);
}

void HostExecutor::place_ahead(Run& run, const Frame& frame, std::uint64_t reached) {
  if (placing_->empty() || run.placed == 1 + reached) return;
  const bool first = run.placed == 0;
  run.placed = 1 + reached;
  placing_->tell({frame.operation, frame.memory(Space::output), first},
                 [&](std::uint32_t lane) { return slices_done(run, lane); });
}

// With one slice, the skewed order is the order of the lanes.
bool HostExecutor::advance_only_slice(Run& run, std::uint32_t& left) {
  const Frame frame = frame_of(run.operands);
  place_ahead(run, frame, run.lane);
  for (; run.lane < program_.steps.size(); ++run.lane, --left) {
    if (left == 0 || !try_step(program_.steps[run.lane], frame, 0)) return false;
    ++run.steps;
  }
  return true;
}

// It lends nothing and places nothing.
bool HostExecutor::advance_short(Run& run, std::uint32_t left) {
  const Operands& operands = run.operands;
  auto* const input = static_cast<std::byte*>(const_cast<void*>(operands.input));  // only ever a source
  std::byte* const scratch = scratch_[operands.operation % kWindow].get();
  const ShortSteps::Operation operation{
      mark_of(operands.operation, 0), {input, static_cast<std::byte*>(operands.output), scratch, nullptr}, operands.scalar};
  for (const std::uint32_t end = short_->size(); run.lane < end; ++run.lane, ++run.steps)
    if (left-- == 0 || !short_->try_step(run.lane, operation)) return false;
  return true;
}

bool HostExecutor::advance_skewed(Run& run, std::uint32_t& left) {
  if (program_.slices == 1) return advance_only_slice(run, left);
  const Frame frame = frame_of(run.operands);
  for (const std::uint64_t rounds = program_.skewed->rounds(program_.slices); run.round < rounds; ++run.round, run.lane = 0) {
    place_ahead(run, frame, run.round);
    const SkewedOrder::Lanes lanes = program_.skewed->lanes_of(run.round, program_.slices);
    for (run.lane = std::max(run.lane, lanes.first); run.lane < lanes.end; ++run.lane, --left) {
      const BoundStep& step = program_.steps[run.lane];
      if (left == 0 || !try_step(step, frame, SkewedOrder::slice_of(run.round, step.stage))) return false;
      ++run.steps;
    }
  }
  return true;
}

bool HostExecutor::advance_ready(Run& run, std::uint32_t& left) {
  std::vector<std::uint64_t>& done = done_[run.operands.operation % kWindow];
  if (run.steps == 0) std::fill(done.begin(), done.end(), 0);  // an earlier operation used them
  const Frame frame = frame_of(run.operands);
  const std::uint64_t all = program_.slices * program_.steps.size();
  for (bool moved = true; moved && run.steps < all;) {
    moved = false;
    place_ahead(run, frame, run.steps);
    for (std::uint32_t lane = 0; lane < program_.steps.size() && left > 0; ++lane) {
      if (!ready_lane_moves(run, frame, lane)) continue;
      ++done[lane];
      ++run.steps;
      --left;
      moved = true;
    }
  }
  return run.steps == all;
}

// True: the next slice of the lane is done.
bool HostExecutor::ready_lane_moves(Run& run, const Frame& frame, std::uint32_t lane) {
  const std::vector<std::uint64_t>& done = done_of(run);
  if (done[lane] == program_.slices) return false;
  const BoundStep& step = program_.steps[lane];
  for (const Dependency& dependency : program_.dependencies_of(step))
    if (dependency.steps > 0 && done[dependency.lane] <= done[lane]) return false;
  return try_step(step, frame, done[lane]);
}

// All messages and slots are checked before one is touched.
bool HostExecutor::try_step(const BoundStep& step, const Frame& frame, std::uint64_t slice) {
  const Mark mark = mark_of(frame.operation, slice);
  const std::uint64_t begin = slice * program_.slice_elements * program_.element_size;
  const HostSource* const sources = &streams_.sources[step.first_source];
  const HostTarget* const targets = &streams_.targets[step.first_target];
  StepPlaces places;
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    places.sources[i] = sources[i].stream != nullptr ? look(*sources[i].stream, mark) : frame.memory(sources[i].space) + begin;
    if (places.sources[i] == nullptr && sources[i].stream != nullptr) return false;
    if (sources[i].sized != nullptr && !sources[i].sized->has_size(mark, program_.message_size(step, slice, sources[i].coded)))
      return false;
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    SendStream* const stream = targets[i].stream;
    std::byte* const memory = frame.memory(targets[i].space);
    if (stream == nullptr) {
      places.write(i, {memory + begin, frame.store(targets[i].space)});
    } else if (targets[i].lending == nullptr || !lend(targets[i], frame, mark)) {
      if (targets[i].lending != nullptr && !targets[i].lends_some) return false;
      std::byte* const slot = stream->acquire(mark);
      if (slot == nullptr) return false;
      places.write(i, {slot, frame.store(Space::channel)});
    }
  }
  if (streams_.borrows && !hold(step, mark)) return false;
  if (places.written > 0) kernels_->perform(step, slice, places, frame.values);
  for (std::uint32_t i = 0; i < step.target_count; ++i)
    if (targets[i].stream != nullptr) targets[i].stream->commit(mark, program_.message_size(step, slice, targets[i].coded));
  for (std::uint32_t i = 0; i < step.source_count; ++i)
    if (sources[i].stream != nullptr) sources[i].stream->release(mark);
  return true;
}

bool HostExecutor::lend(const HostTarget& target, const Frame& frame, Mark mark) const {
  const std::size_t stride = program_.slice_elements * program_.element_size;
  return target.lending->lend(mark, frame.memory(target.space) + target.lent_offset, stride);
}

bool HostExecutor::hold(const BoundStep& step, Mark mark) {
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const HostSource& source = streams_.sources[step.first_source + i];
    if (source.borrowing == nullptr || source.borrowing->hold(mark)) continue;
    for (std::uint32_t held = 0; held < i; ++held) {
      const HostSource& other = streams_.sources[step.first_source + held];
      if (other.borrowing != nullptr) other.borrowing->let_go(mark);
    }
    return false;
  }
  return true;
}

}  // namespace seto

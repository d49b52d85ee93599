#include "src/engine/host_launch.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace seto {
namespace {

// A message is most often waited for right here: the way out of the engine and back in takes as long as ten looks, and half of it
// is lost when the message comes meanwhile.
constexpr int kLooks = 16;

const std::byte* look(ReceiveStream& stream, Mark mark) {
  const std::byte* message = stream.front(mark);
  for (int looks = 1; message == nullptr && looks < kLooks; ++looks) message = stream.front(mark);
  return message;
}

}  // namespace

HostLaunch::Frame HostLaunch::frame_of(const Operands& operands) const {
  // The input is only ever a source; one pointer type keeps the loops below free of branches.
  auto* const input = static_cast<std::byte*>(const_cast<void*>(operands.input));
  return {operands.operation,
          {input, static_cast<std::byte*>(operands.output), scratch_[operands.operation % 2].get(), nullptr},
          {Store::cached, operands.results, Store::cached, operands.slots},
          operands.scalar,
          static_cast<std::byte*>(operands.residual)};
}

bool HostLaunch::advance(Run& run, std::uint32_t steps) {
  if (run.finished) return true;
  const bool done = order_ == StepOrder::skewed ? advance_skewed(run, steps) : advance_ready(run, steps);
  run.finished = done && all_taken(run.operands.operation);
  return run.finished;
}

bool HostLaunch::ran_through(const Run& run) const {
  if (order_ == StepOrder::skewed) return run.round == slices_ + stages_ - 1;
  const std::vector<std::uint64_t>& done = done_[run.operands.operation % 2];
  return std::all_of(done.begin(), done.end(), [&](std::uint64_t slices) { return slices == slices_; });
}

bool HostLaunch::all_taken(std::uint64_t operation) const {
  return std::all_of(lending_.begin(), lending_.end(), [&](const Target& target) { return target.stream->taken(operation); });
}

bool HostLaunch::withdraw(const Run& run) {
  bool all = true;
  for (const Placing& placing : placing_) placing.stream->displace(run.operands.operation);
  for (const Target& target : lending_) all &= target.stream->revoke(run.operands.operation);
  return all;
}

std::uint64_t HostLaunch::slices_past_hazards(const BoundStep& step, const Run& run) const {
  std::uint64_t slices = slices_;
  for (std::uint32_t d = 0; d < step.dependency_count; ++d) {
    const Dependency& dependency = dependencies_[step.first_dependency + d];
    if (dependency.steps == 0) continue;
    const std::uint64_t stage = steps_[dependency.lane].stage;
    const std::uint64_t done = slices_ == 1 ? (dependency.lane < run.lane ? 1 : 0) : run.round - std::min(run.round, stage);
    slices = std::min(slices, done);
  }
  return slices;
}

void HostLaunch::place_ahead(Run& run, const Frame& frame) {
  const std::uint64_t reached = 1 + (slices_ == 1 ? run.lane : run.round);
  if (placing_.empty() || run.placed == reached) return;
  const std::size_t first = run.placed == 0 ? 0 : placed_at_once_;
  run.placed = reached;
  for (const Placing& placing : std::span(placing_).subspan(first))
    placing.stream->place({frame.operation, frame.memory(placing.space) + placing.offset, slice_elements_ * element_size_,
                           placing.size, slices_past_hazards(steps_[placing.lane], run)});
}

// Lanes stand in the order of their stages.
bool HostLaunch::advance_only_slice(Run& run, std::uint32_t steps) {
  const Frame frame = frame_of(run.operands);
  place_ahead(run, frame);
  for (; run.lane < steps_.size(); ++run.lane, --steps)
    if (steps == 0 || !try_step(steps_[run.lane], frame, 0)) return false;
  run.round = stages_;
  return true;
}

bool HostLaunch::advance_skewed(Run& run, std::uint32_t steps) {
  if (slices_ == 1) return advance_only_slice(run, steps);
  const Frame frame = frame_of(run.operands);
  for (const std::uint64_t rounds = slices_ + stages_ - 1; run.round < rounds; ++run.round, run.lane = 0) {
    place_ahead(run, frame);
    // Only the stages that have a slice in this round.
    const std::uint32_t first = stage_lanes_[run.round < slices_ ? 0 : run.round - slices_ + 1];
    const std::uint32_t end = stage_lanes_[std::min<std::uint64_t>(run.round + 1, stages_)];
    for (run.lane = std::max(run.lane, first); run.lane < end; ++run.lane, --steps) {
      const BoundStep& step = steps_[run.lane];
      if (steps == 0 || !try_step(step, frame, run.round - step.stage)) return false;
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
  const Frame frame = frame_of(run.operands);
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
      if (!ready || !try_step(step, frame, done[lane])) continue;
      ++done[lane];
      --steps;
      moved = true;
    }
    if (all) return true;
  }
  return false;
}

// Looks for all slots before it touches one.
bool HostLaunch::try_step(const BoundStep& step, const Frame& frame, std::uint64_t slice) {
  const Mark mark = mark_of(frame.operation, slice);
  const std::uint64_t begin = slice * slice_elements_ * element_size_;
  const Source* const sources = &sources_[step.first_source];
  const Target* const targets = &targets_[step.first_target];
  Places places;
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    places.sources[i] = sources[i].stream != nullptr ? look(*sources[i].stream, mark) : frame.memory(sources[i].space) + begin;
    if (places.sources[i] == nullptr && sources[i].stream != nullptr) return false;
    if (sources[i].asks_size && !sources[i].stream->brings(mark, message_size(step, slice, sources[i].coded))) return false;
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    SendStream* const stream = targets[i].stream;
    std::byte* const memory = frame.memory(targets[i].space);
    if (stream == nullptr) {
      places.write(i, {memory + begin, frame.store(targets[i].space)});
    } else if (targets[i].lends) {
      if (!stream->lend(mark, memory + targets[i].lent_offset, slice_elements_ * element_size_)) return false;
    } else {
      std::byte* const slot = stream->acquire(mark);
      if (slot == nullptr) return false;
      places.write(i, {slot, frame.store(Space::channel)});
    }
  }
  if (step.borrows && !hold(step, mark)) return false;
  if (places.written > 0) perform(step, frame, places, slice);
  for (std::uint32_t i = 0; i < step.target_count; ++i)
    if (targets[i].stream != nullptr) {
      if (targets[i].asks_size) targets[i].stream->tell_size(mark, message_size(step, slice, targets[i].coded));
      targets[i].stream->commit(mark);
    }
  for (std::uint32_t i = 0; i < step.source_count; ++i)
    if (sources[i].stream != nullptr) sources[i].stream->release(mark);
  return true;
}

// Pieces of one message stand a stride apart, and the later ones may be shorter, or have no part in the last slice.
std::size_t HostLaunch::message_size(const BoundStep& step, std::uint64_t slice, bool coded) const {
  const std::uint64_t begin = slice * slice_elements_;
  for (std::uint32_t piece = step.pieces; piece-- > 0;) {
    const std::uint64_t length = lengths_[step.first_piece + piece];
    if (length <= begin) continue;
    return piece * stride_of(coded) + size_of_elements(std::min(slice_elements_, length - begin), coded);
  }
  return 0;
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

void HostLaunch::perform(const BoundStep& step, const Frame& frame, const Places& places, std::uint64_t slice) {
  const void* from[kMaxReduceSources];
  ReduceTarget to[kMaxReduceTargets];
  const std::uint64_t begin = slice * slice_elements_;
  const std::uint64_t* offset = &offsets_[step.first_offset];
  for (std::uint32_t piece = 0; piece < step.pieces; ++piece, offset += step.source_count + step.target_count) {
    const std::uint64_t length = lengths_[step.first_piece + piece];
    if (length <= begin) continue;
    const std::uint64_t count = std::min(slice_elements_, length - begin);
    for (std::uint32_t i = 0; i < step.source_count; ++i) from[i] = places.sources[i] + offset[i];
    for (std::uint32_t i = 0; i < places.written; ++i)
      to[i] = {places.targets[i].data + offset[step.source_count + places.target_index[i]], places.targets[i].store};
    const void* const scalar = step.scaled != 0 ? frame.scalar : nullptr;
    const ReduceCall call{from, step.source_count, to, places.written, count, step.scaled, scalar, step.divisor};
    if ((step.coded_sources | step.coded_targets) != 0 || step.rounds) {
      std::uint64_t coded_targets = 0;  // of those that are written: what is lent is not
      for (std::uint32_t i = 0; i < places.written; ++i) coded_targets |= (step.coded_targets >> places.target_index[i] & 1) << i;
      const std::uint64_t at = residuals_[step.first_piece + piece];
      const bool owes = frame.residual != nullptr && at != kNoResidual;
      void* const residual = owes ? frame.residual + at + begin * coding_->residual_size() : nullptr;
      coding_->perform({call, step.coded_sources, coded_targets, step.moves, step.rounds, residual});
    } else if (step.moves) {
      if (from[0] != to[0].data || places.written > 1) copy_bytes(from[0], to, places.written, count * element_size_);
    } else {
      reduce_(call);
    }
  }
}

HostLaunch::Wait HostLaunch::waits_at(const Run& run) const {
  if (ran_through(run)) {
    for (const Target& target : lending_)
      if (!target.stream->taken(run.operands.operation))
        return {target.peer, "waits until rank " + std::to_string(target.peer) + " has read its data", ""};
    return {-1, "has done all its steps", ""};
  }
  if (order_ == StepOrder::skewed) {
    if (run.lane >= steps_.size()) return {-1, "is between two steps", ""};
    return waits_at(run, run.lane, slices_ == 1 ? 0 : run.round - steps_[run.lane].stage);
  }
  // In readiness order many lanes wait: the first that waits for a peer keeps others waiting, too.
  const std::vector<std::uint64_t>& done = done_[run.operands.operation % 2];
  for (std::uint32_t lane = 0; lane < steps_.size(); ++lane) {
    if (done[lane] == slices_) continue;
    Wait wait = waits_at(run, lane, done[lane]);
    if (wait.peer >= 0) return wait;
  }
  return {-1, "is between two steps", ""};
}

HostLaunch::Wait HostLaunch::waits_at(const Run& run, std::uint32_t lane, std::uint64_t slice) const {
  const BoundStep& step = steps_[lane];
  const Mark mark = mark_of(run.operands.operation, slice);
  const std::string where = "step " + std::to_string(lane + 1) + " of " + std::to_string(steps_.size());
  const std::string which = "slice " + std::to_string(slice + 1) + " of " + std::to_string(slices_);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const Source& source = sources_[step.first_source + i];
    if (source.stream == nullptr || source.stream->front(mark) != nullptr) continue;
    return {source.peer, "waits for " + which + " from rank " + std::to_string(source.peer), where};
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const Target& target = targets_[step.first_target + i];
    if (target.stream == nullptr || target.lends || target.stream->acquire(mark) != nullptr) continue;
    return {target.peer, "waits for rank " + std::to_string(target.peer) + " to take what came before " + which, where};
  }
  return {-1, "is at " + which, where};
}

}  // namespace seto

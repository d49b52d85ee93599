#include "src/engine/short_steps.h"

#include <algorithm>

namespace seto {
namespace {

// One source that can be revoked: then no other has to be let go.
bool is_short(const BoundProgram& program, const HostStreams& streams, const BoundStep& step) {
  const HostSource* const sources = streams.sources.data() + step.first_source;
  const auto borrows = [](const HostSource& source) { return source.borrowing != nullptr; };
  const auto sized = [](const HostSource& source) { return source.sized != nullptr; };
  return step.pieces == 1 && program.lengths[step.first_piece] * program.element_size <= ShortSteps::kMost &&
         std::count_if(sources, sources + step.source_count, borrows) <= 1 &&
         std::none_of(sources, sources + step.source_count, sized);
}

}  // namespace

std::unique_ptr<ShortSteps> ShortSteps::create(const BoundProgram& program, const HostStreams& streams) {
  if (program.slices != 1 || program.codec != 0 || !streams.lending.empty() || program.steps.empty()) return nullptr;
  for (const BoundStep& step : program.steps)
    if (!is_short(program, streams, step)) return nullptr;
  return std::unique_ptr<ShortSteps>(new ShortSteps(program, streams));
}

ShortSteps::ShortSteps(const BoundProgram& program, const HostStreams& streams)
    : reduce_(reduce_function(program.type, program.op)) {
  sources_.reserve(streams.sources.size());  // steps point into both
  targets_.reserve(streams.targets.size());
  for (const BoundStep& bound : program.steps) {
    Step& step = steps_.emplace_back();
    step.sources = sources_.data() + sources_.size();
    step.targets = targets_.data() + targets_.size();
    step.source_count = bound.source_count;
    step.target_count = bound.target_count;
    step.count = program.lengths[bound.first_piece];
    step.bytes = step.count * program.element_size;
    step.scaled = bound.scaled;
    step.divisor = bound.divisor;
    step.moves = bound.moves;
    // A call without elements may come without buffers, and nothing is added to a null pointer.
    const std::uint64_t* offset = program.offsets.data() + bound.first_offset;
    for (std::uint32_t i = 0; i < bound.source_count; ++i) {
      const HostSource& source = streams.sources[bound.first_source + i];
      sources_.push_back({source.stream, source.borrowing, source.space, step.count > 0 ? *offset : 0});
      ++offset;
    }
    for (std::uint32_t i = 0; i < bound.target_count; ++i) {
      const HostTarget& target = streams.targets[bound.first_target + i];
      targets_.push_back({target.stream, target.space, step.count > 0 ? *offset : 0});
      ++offset;
    }
    const bool from_memory = step.source_count == 1 && step.sources[0].stream == nullptr;
    step.sends = step.moves && step.count > 0 && from_memory && step.target_count == 1 && step.targets[0].stream != nullptr;
  }
}

// Few enough to take about a microsecond.
std::uint32_t ShortSteps::first_sends() const {
  constexpr std::ptrdiff_t kFew = 8;
  const auto other = std::find_if(steps_.begin(), steps_.end(), [](const Step& step) { return !step.sends; });
  return static_cast<std::uint32_t>(std::min(other - steps_.begin(), kFew));
}

// All messages and slots are checked before one is touched.
bool ShortSteps::try_step(std::uint32_t lane, const Operation& operation) const {
  const Step& step = steps_[lane];
  const auto memory = [&operation](Space space, std::uint64_t offset) {
    return operation.memories[static_cast<std::size_t>(space)] + offset;
  };
  if (step.sends)
    return step.targets->stream->send(operation.mark, memory(step.sources->space, step.sources->offset), step.bytes);
  const void* from[kMaxReduceSources];  // neither array is cleared: that costs more than a short message
  ReduceTarget to[kMaxReduceTargets];
  BorrowingReceiver* borrowing = nullptr;
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    const Source& source = step.sources[i];
    if (source.stream == nullptr) {
      from[i] = memory(source.space, source.offset);
      continue;
    }
    const std::byte* const message = look(*source.stream, operation.mark);
    if (message == nullptr) return false;
    from[i] = message + source.offset;
    if (source.borrowing != nullptr) borrowing = source.borrowing;
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const Target& target = step.targets[i];
    std::byte* const place = target.stream == nullptr ? memory(target.space, 0) : target.stream->acquire(operation.mark);
    if (target.stream != nullptr && place == nullptr) return false;
    to[i] = {place + target.offset, Store::cached};
  }
  if (borrowing != nullptr && !borrowing->hold(operation.mark)) return false;
  if (step.count > 0) perform(step, from, to, operation.scalar);
  for (std::uint32_t i = 0; i < step.target_count; ++i)
    if (step.targets[i].stream != nullptr) step.targets[i].stream->commit(operation.mark, step.bytes);
  for (std::uint32_t i = 0; i < step.source_count; ++i)
    if (step.sources[i].stream != nullptr) step.sources[i].stream->release(operation.mark);
  return true;
}

void ShortSteps::perform(const Step& step, const void* const* from, const ReduceTarget* to, const void* scalar) const {
  if (!step.moves)
    reduce_({from, step.source_count, to, step.target_count, step.count, step.scaled, step.scaled != 0 ? scalar : nullptr,
             step.divisor});
  else if (from[0] != to[0].data || step.target_count > 1)
    copy_bytes(from[0], to, step.target_count, step.bytes);
}

}  // namespace seto

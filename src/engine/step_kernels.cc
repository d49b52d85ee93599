#include "src/engine/step_kernels.h"

#include <algorithm>

namespace seto {

StepKernels::StepKernels(const BoundProgram& program) : program_(program), reduce_(reduce_function(program.type, program.op)) {}

Result<std::unique_ptr<StepKernels>> StepKernels::create(const BoundProgram& program) {
  std::unique_ptr<StepKernels> kernels(new StepKernels(program));
  if (program.codec != 0) {
    SETO_ASSIGN(kernels->coding_, Coding::create({program.codec, program.type, program.op, program.most_sources}));
  }
  return kernels;
}

void StepKernels::perform(const BoundStep& step, std::uint64_t slice, const StepPlaces& places, const Values& values) {
  const void* from[kMaxReduceSources];
  ReduceTarget to[kMaxReduceTargets];
  const std::uint64_t begin = slice * program_.slice_elements;
  const std::uint64_t* offset = &program_.offsets[step.first_offset];
  for (std::uint32_t piece = 0; piece < step.pieces; ++piece, offset += step.source_count + step.target_count) {
    const std::uint64_t length = program_.lengths[step.first_piece + piece];
    if (length <= begin) continue;
    const std::uint64_t count = std::min(program_.slice_elements, length - begin);
    for (std::uint32_t i = 0; i < step.source_count; ++i) from[i] = places.sources[i] + offset[i];
    for (std::uint32_t i = 0; i < places.written; ++i)
      to[i] = {places.targets[i].data + offset[step.source_count + places.target_index[i]], places.targets[i].store};
    const void* const scalar = step.scaled != 0 ? values.scalar : nullptr;
    const ReduceCall call{from, step.source_count, to, places.written, count, step.scaled, scalar, step.divisor};
    if ((step.coded_sources | step.coded_targets) != 0 || step.rounds) {
      const std::uint64_t at = program_.residuals[step.first_piece + piece];
      const bool owes = values.residual != nullptr && at != BoundProgram::kNoResidual;
      perform_coded(step, call, places, owes ? values.residual + at + begin * coding_->residual_size() : nullptr);
    } else if (step.moves) {
      if (from[0] != to[0].data || places.written > 1) copy_bytes(from[0], to, places.written, count * program_.element_size);
    } else {
      reduce_(call);
    }
  }
}

void StepKernels::perform_coded(const BoundStep& step, const ReduceCall& call, const StepPlaces& places, void* residual) {
  std::uint64_t coded_targets = 0;  // of the targets that are written
  for (std::uint32_t i = 0; i < places.written; ++i) coded_targets |= (step.coded_targets >> places.target_index[i] & 1) << i;
  coding_->perform({call, step.coded_sources, coded_targets, step.moves, step.rounds, residual});
}

}  // namespace seto

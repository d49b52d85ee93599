// Describes what a run of the host executor waits for. The answer is derived from the streams on request; nothing is recorded.

#include <algorithm>
#include <string>

#include "src/engine/host_executor.h"

namespace seto {

bool HostExecutor::ran_through(const Run& run) const { return run.steps == program_.slices * program_.steps.size(); }

Executor::Wait HostExecutor::waits_at(const Run& run) const {
  if (ran_through(run)) {
    for (const HostTarget& target : streams_.lending)
      if (!target.lending->taken(run.operands.operation))
        return {target.peer, "waits until rank " + std::to_string(target.peer) + " has read its data", ""};
    return {-1, "has done all its steps", ""};
  }
  if (order_ == StepOrder::skewed) {
    if (run.lane >= program_.steps.size()) return {-1, "is between two steps", ""};
    const std::uint32_t stage = program_.steps[run.lane].stage;
    return waits_at(run, run.lane, program_.slices == 1 ? 0 : SkewedOrder::slice_of(run.round, stage));
  }
  // In readiness order many lanes wait. The first that waits for a peer keeps others waiting, too.
  for (std::uint32_t lane = 0; lane < program_.steps.size(); ++lane) {
    const std::uint64_t done = run.steps == 0 ? 0 : done_of(run)[lane];
    if (done == program_.slices) continue;
    Wait wait = waits_at(run, lane, done);
    if (wait.peer >= 0) return wait;
  }
  return {-1, "is between two steps", ""};
}

Executor::Wait HostExecutor::waits_at(const Run& run, std::uint32_t lane, std::uint64_t slice) const {
  const BoundStep& step = program_.steps[lane];
  const Mark mark = mark_of(run.operands.operation, slice);
  const std::string where = "step " + std::to_string(lane + 1) + " of " + std::to_string(program_.steps.size());
  const std::string which = "slice " + std::to_string(slice + 1) + " of " + std::to_string(program_.slices);
  for (std::uint32_t i = 0; i < step.source_count; ++i) {
    ReceiveStream* const stream = streams_.sources[step.first_source + i].stream;
    if (stream == nullptr || stream->front(mark) != nullptr) continue;
    const BoundSource& source = program_.sources[step.first_source + i];
    const auto peer = static_cast<Rank>(program_.streams[source.stream].address.sender);
    return {peer, "waits for " + which + " from rank " + std::to_string(peer), where};
  }
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const HostTarget& target = streams_.targets[step.first_target + i];
    if (target.stream == nullptr || (target.lending != nullptr && !target.lends_some)) continue;
    if (target.lends_some && lend(target, frame_of(run.operands), mark)) continue;
    if (target.stream->acquire(mark) != nullptr) continue;
    return {target.peer, "waits for rank " + std::to_string(target.peer) + " to take what came before " + which, where};
  }
  return {-1, "is at " + which, where};
}

}  // namespace seto

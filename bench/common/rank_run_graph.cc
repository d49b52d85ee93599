// Calls that run from a CUDA graph (-G).
#include "bench/common/rank_run.h"

namespace seto::bench {

bool RankRun::record(const std::function<bool()>& calls) {
  return ok(gpu_->begin_recording(), "begin of a graph") && calls() && ok(gpu_->end_recording(), "end of a graph");
}

bool RankRun::record_iterations(const Prepared& prepared) {
  return record([&] {
    for (int iteration = 0; iteration < options_.iterations; ++iteration)
      if (!issue(prepared, static_cast<std::size_t>(iteration))) return false;
    return true;
  });
}

// As in nccl-tests, the time of an iteration is that of all launches, divided.
bool RankRun::launch_iterations(Elapsed& elapsed) {
  const double start = seconds_now();
  for (int launch = 0; launch < options_.graph_launches; ++launch)
    if (!ok(gpu_->launch_recording(), "launch of a graph")) return false;
  if (!wait_stream()) return false;
  elapsed.seconds = (seconds_now() - start) / options_.graph_launches;
  return true;
}

// The checked call. It runs from a graph of its own where the timed ones did.
bool RankRun::call_once(const Call& call) {
  const auto issued = [&] { return ok(program_.call(call), "call"); };
  if (options_.graph_launches == 0) return issued() && (stream_ == nullptr || wait_stream());
  return record(issued) && ok(gpu_->launch_recording(), "launch of a graph") && wait_stream();
}

}  // namespace seto::bench

#include "src/core/communicator/time_estimate.h"

#include <algorithm>

#include "src/core/call/ids.h"

namespace seto {

Result<double> estimated_seconds(const Communicator& communicator, const Call& call) {
  SETO_TRY(check(call, communicator.rank(), communicator.ranks()));
  const CostModel costs = communicator.costs();
  const Surroundings here = communicator.surroundings(costs);
  const Question question = question_of(call, here);
  SETO_ASSIGN(const Choice choice, choose(question, here.tiers_of(question), costs));
  for (const Candidate& candidate : choice.candidates)
    if (candidate.algorithm == choice.algorithm) return candidate.estimate.seconds;
  return failure(Code::internal, "no estimate for %s", name_of(call.collective).data());
}

// One hop, then the time of the direction with more bytes. What this rank sends to itself is a copy.
Result<double> estimated_seconds(const Communicator& communicator, std::span<const Transfer> transfers) {
  double sent = 0;
  double received = 0;
  double copied = 0;
  for (const Transfer& transfer : transfers) {
    SETO_TRY(check(transfer, communicator.ranks()));
    const double bytes = static_cast<double>(transfer.count) * static_cast<double>(size_of(transfer.type));
    const bool sends = transfer.direction == LocalTransfer::Direction::send;
    if (transfer.peer == communicator.rank())
      copied += sends ? bytes : 0;
    else
      (sends ? sent : received) += bytes;
  }
  const CostModel costs = communicator.costs();
  const TierCost& tier = costs.of(communicator.tiers().widest());
  const double crowding = communicator.ranks_a_core();
  const bool alone =
      std::all_of(transfers.begin(), transfers.end(), [&](const Transfer& one) { return one.peer == communicator.rank(); });
  const double hop = alone ? 0 : tier.latency_seconds + (crowding > 1 ? costs.switch_on(communicator.tiers().widest()) : 0);
  return hop + std::max(sent, received) * crowding / tier.bytes_per_second + copied * crowding / costs.node.bytes_per_second;
}

}  // namespace seto

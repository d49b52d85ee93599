#include "src/plan/step_order.h"

namespace seto {

Result<SkewedOrder> SkewedOrder::of(const Program& program) {
  SkewedOrder order;
  std::uint32_t lane = 0;
  for (std::uint32_t stage = 0; stage < program.stages(); ++stage) {
    order.first_lanes_.push_back(lane);
    for (; lane < program.lanes.size(); ++lane) {
      const Lane& here = program.lanes[lane];
      if (here.step_count != 1)
        return failure(Code::internal, "rank %d: lane %u has %u steps, a skewed order takes one", program.rank, lane,
                       here.step_count);
      if (program.steps[here.first_step].stage != stage) break;
    }
  }
  order.first_lanes_.push_back(lane);
  if (lane < program.lanes.size())
    return failure(Code::internal, "rank %d: lane %u is not in the order of the stages", program.rank, lane);
  return order;
}

}  // namespace seto

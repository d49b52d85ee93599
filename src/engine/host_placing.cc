#include "src/engine/host_placing.h"

namespace seto {
namespace {

// A shorter message is copied by its step: that costs less than passing its destination to the stream.
constexpr std::uint64_t kWorthPlacing = 16 << 10;

}  // namespace

HostPlacing::HostPlacing(const BoundProgram& program, const HostStreams& streams) : program_(program) {
  for (const BoundPlacement& placement : program.placements) {
    const BoundStep& step = program.steps[placement.lane];
    PlacingReceiver* const stream = streams.sources[step.first_source].stream->placing();
    // Data that the step sends on is read from the output, so no target needs the bytes elsewhere.
    const auto first = streams.targets.begin() + step.first_target;
    const bool lends_all = std::all_of(first, first + step.target_count, [](const HostTarget& target) {
      return target.stream == nullptr || (target.lending != nullptr && !target.lends_some);
    });
    if (stream != nullptr && lends_all && placement.size >= kWorthPlacing)
      placements_.push_back({stream, placement.lane, placement.offset, placement.size, {}});
  }
  const auto hazards = std::stable_partition(placements_.begin(), placements_.end(), [&](const Placed& placed) {
    const auto dependencies = program.dependencies_of(program.steps[placed.lane]);
    return std::none_of(dependencies.begin(), dependencies.end(), [](const Dependency& each) { return each.steps > 0; });
  });
  free_ = static_cast<std::size_t>(hazards - placements_.begin());
}

void HostPlacing::tell(Placed& placed, const Destination& destination, std::uint64_t until) {
  std::uint64_t& told = placed.told[destination.operation % kWindow];
  if (!destination.first && told == until) return;
  told = until;
  placed.stream->place({destination.operation, destination.output + placed.offset,
                        program_.slice_elements * program_.element_size, placed.size, until});
}

void HostPlacing::withdraw(std::uint64_t operation) {
  for (const Placed& placed : placements_) placed.stream->displace(operation);
}

}  // namespace seto

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/bound_program.h"
#include "src/engine/host_streams.h"

namespace seto {

// Passes to streams the destinations of messages in the caller's output, and the number of slices that may be received there: a
// slice
// may be received once every step that touched its place before is past that slice.
class HostPlacing final {
 public:
  HostPlacing(const BoundProgram& program, const HostStreams& streams);

  [[nodiscard]] bool empty() const { return placements_.empty(); }

  struct Destination {
    std::uint64_t operation = 0;
    std::byte* output = nullptr;
    bool first = false;  // the first call for this operation
  };
  // Passes all new permissions to the streams. slices_done(lane): how many slices of the operation that lane has completed.
  template <class SlicesDone>
  void tell(const Destination& destination, const SlicesDone& slices_done) {
    for (std::size_t i = destination.first ? 0 : free_; i < placements_.size(); ++i) {
      Placed& placed = placements_[i];
      std::uint64_t until = program_.slices;
      for (const Dependency& dependency : program_.dependencies_of(program_.steps[placed.lane]))
        if (dependency.steps > 0) until = std::min(until, slices_done(dependency.lane));
      tell(placed, destination, until);
    }
  }

  // The operation failed: nothing is received into its output any more.
  void withdraw(std::uint64_t operation);

 private:
  struct Placed {
    PlacingReceiver* stream = nullptr;
    std::uint32_t lane = 0;
    std::uint64_t offset = 0;  // bytes, in the output
    std::uint64_t size = 0;
    std::array<std::uint64_t, kWindow> told{};  // slices, for each operation under way
  };

  void tell(Placed& placed, const Destination& destination, std::uint64_t until);

  const BoundProgram& program_;
  std::vector<Placed> placements_;  // those without hazards first
  std::size_t free_ = 0;            // how many have no hazards
};

}  // namespace seto

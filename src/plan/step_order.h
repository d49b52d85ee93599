#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/plan/plan.h"

namespace seto {

// The order in which an executor runs the steps of a program.
//   readiness: every lane continues as soon as its next step can run
//   skewed:    one worker executes the rounds of SkewedOrder and waits at the first step that cannot run
enum class StepOrder : std::uint8_t { readiness, skewed };

// The skewed order of a lowered program: slice s of a lane of stage t runs in round s + t, and the lanes of one round run in
// their order. The host executor, the simulated engine and the verifier all use this class.
class SkewedOrder final {
 public:
  // Fails unless each lane holds one step and the lanes stand in the order of their stages.
  static Result<SkewedOrder> of(const Program& program);

  [[nodiscard]] std::uint64_t rounds(std::uint64_t slices) const { return slices + stages() - 1; }

  struct Lanes {
    std::uint32_t first, end;
  };
  // The lanes that have a slice in this round: those of consecutive stages.
  [[nodiscard]] Lanes lanes_of(std::uint64_t round, std::uint64_t slices) const {
    return {first_lanes_[round < slices ? 0 : round - slices + 1], first_lanes_[std::min<std::uint64_t>(round + 1, stages())]};
  }
  static constexpr std::uint64_t slice_of(std::uint64_t round, std::uint32_t stage) { return round - stage; }
  // The slices of a lane that are complete when a round begins, not limited by their number.
  static constexpr std::uint64_t slices_before(std::uint64_t round, std::uint32_t stage) {
    return round - std::min<std::uint64_t>(round, stage);
  }

 private:
  SkewedOrder() = default;
  [[nodiscard]] std::uint64_t stages() const { return first_lanes_.size() - 1; }

  std::vector<std::uint32_t> first_lanes_;  // by stage; then the number of lanes
};

}  // namespace seto

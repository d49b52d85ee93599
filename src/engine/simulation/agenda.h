#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/plan/channel_index.h"
#include "src/plan/plan.h"
#include "src/plan/step_order.h"

namespace seto {

struct VirtualTask {
  std::uint32_t step = 0;
  std::uint64_t slice = 0;
};

// The order in which the worker of one rank takes its steps and slices. In readiness order it looks only at lanes that were woken
// since they could last not run, because a rank of a large job has hundreds of lanes.
class Agenda final {
 public:
  // No `skewed`: the readiness order.
  Agenda(const Program& program, std::uint64_t slices, std::optional<SkewedOrder> skewed)
      : program_(&program), slices_(slices), skewed_(std::move(skewed)) {
    remaining_ = slices * program.steps.size();
    if (!skewed_) {
      taken_.assign(program.lanes.size(), 0);
      awake_.assign((program.lanes.size() + kBits - 1) / kBits, ~std::uint64_t{0});
    }
    settle();
  }

  [[nodiscard]] bool done() const { return remaining_ == 0; }

  // The next step of this lane may be able to run now.
  void wake(std::uint32_t lane) {
    if (!skewed_) awake_[lane / kBits] |= std::uint64_t{1} << lane % kBits;
  }

  // The next task for which ready(task) holds. In skewed order only one task is ever looked at.
  template <class Ready>
  std::optional<VirtualTask> next(Ready ready) {
    if (skewed_) {
      const VirtualTask task = skewed_task();
      return ready(task) ? std::optional(task) : std::nullopt;
    }
    const std::size_t lanes = taken_.size();
    const std::size_t first = last_lane_ + 1 < lanes ? last_lane_ + 1 : 0;
    for (std::size_t lane = first_awake(first); lane < lanes; lane = first_awake(lane + 1))
      if (const auto task = task_of(lane, ready)) return task;
    for (std::size_t lane = first_awake(0); lane < first; lane = first_awake(lane + 1))
      if (const auto task = task_of(lane, ready)) return task;
    return std::nullopt;
  }

  // Any task that is next in its order, for reports.
  [[nodiscard]] VirtualTask waiting() const {
    if (skewed_) return skewed_task();
    std::size_t lane = 0;
    while (is_at_end(lane)) ++lane;
    return head_of(lane);
  }

  void took(const VirtualTask& task) {
    --remaining_;
    if (skewed_) {
      ++lane_;
      settle();
    } else {
      last_lane_ = lane_of(*program_, task.step);
      ++taken_[last_lane_];
    }
  }

 private:
  static constexpr std::size_t kBits = 64;

  [[nodiscard]] bool is_at_end(std::size_t lane) const { return taken_[lane] == slices_ * program_->lanes[lane].step_count; }

  template <class Ready>
  std::optional<VirtualTask> task_of(std::size_t lane, Ready ready) {
    if (!is_at_end(lane)) {
      const VirtualTask task = head_of(lane);
      if (ready(task)) return task;
    }
    awake_[lane / kBits] &= ~(std::uint64_t{1} << lane % kBits);
    return std::nullopt;
  }

  // The first lane from `lane` on that is awake; the number of lanes or more if there is none.
  [[nodiscard]] std::size_t first_awake(std::size_t lane) const {
    std::size_t word = lane / kBits;
    if (word >= awake_.size()) return taken_.size();
    std::uint64_t bits = awake_[word] & (~std::uint64_t{0} << lane % kBits);
    while (bits == 0) {
      if (++word == awake_.size()) return taken_.size();
      bits = awake_[word];
    }
    return word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
  }

  [[nodiscard]] VirtualTask skewed_task() const {
    const std::uint32_t step = program_->lanes[lane_].first_step;
    return {step, SkewedOrder::slice_of(round_, program_->steps[step].stage)};
  }

  [[nodiscard]] VirtualTask head_of(std::size_t lane) const {
    const std::uint32_t length = program_->lanes[lane].step_count;
    return {program_->lanes[lane].first_step + static_cast<std::uint32_t>(taken_[lane] % length), taken_[lane] / length};
  }

  // Skewed order: moves to the next lane that has a slice in its round.
  void settle() {
    for (; skewed_ && !done(); ++round_, lane_ = 0) {
      const SkewedOrder::Lanes lanes = skewed_->lanes_of(round_, slices_);
      lane_ = std::max(lane_, lanes.first);
      if (lane_ < lanes.end) return;
    }
  }

  const Program* program_;
  std::uint64_t slices_;
  std::optional<SkewedOrder> skewed_;
  std::vector<std::uint64_t> taken_;  // readiness: steps taken in each lane
  std::vector<std::uint64_t> awake_;  // readiness: a bit for each lane
  std::size_t last_lane_ = 0;
  std::uint64_t round_ = 0;
  std::uint32_t lane_ = 0;  // in that round
  std::uint64_t remaining_ = 0;
};

}  // namespace seto

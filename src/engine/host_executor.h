#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "src/base/result.h"
#include "src/engine/bound_program.h"
#include "src/engine/executor.h"
#include "src/engine/host_placing.h"
#include "src/engine/host_streams.h"
#include "src/engine/short_steps.h"
#include "src/engine/step_kernels.h"
#include "src/plan/step_order.h"
#include "transports/peer_group.h"

namespace seto {

// Runs a bound program on a CPU, over the streams of a peer group. The thread that calls advance() does the work.
class HostExecutor final : public Executor {
 public:
  // Opens the program's streams; they end with the executor. Fails if the program is not lowered.
  static Result<std::unique_ptr<HostExecutor>> open(BoundProgram program, StepOrder order, PeerGroup& peer_group);

  bool advance(Run& run, std::uint32_t steps) override;
  bool withdraw(const Run& run) override;
  [[nodiscard]] std::uint32_t first_sends() const override { return short_ != nullptr ? short_->first_sends() : 0; }
  void expect_residuals() override { kernels_->expect_residuals(); }
  [[nodiscard]] Wait waits_at(const Run& run) const override;

 private:
  // One operation, as its steps see it.
  struct Frame {
    std::uint64_t operation;
    std::array<std::byte*, 4> memories;  // by space
    std::array<Store, 4> stores;
    StepKernels::Values values;

    [[nodiscard]] std::byte* memory(Space space) const { return memories[static_cast<std::size_t>(space)]; }
    [[nodiscard]] Store store(Space space) const { return stores[static_cast<std::size_t>(space)]; }
  };
  struct AlignedDelete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kScratchAlignment); }
  };
  static constexpr std::align_val_t kScratchAlignment{64};

  HostExecutor(BoundProgram program, StepOrder order) : program_(std::move(program)), order_(order) {}

  Status allocate();
  Frame frame_of(const Operands& operands) const;

  // `left`: the steps that may still be done in this call.
  bool advance_skewed(Run& run, std::uint32_t& left);
  bool advance_only_slice(Run& run, std::uint32_t& left);
  bool advance_short(Run& run, std::uint32_t left);
  bool advance_ready(Run& run, std::uint32_t& left);
  bool ready_lane_moves(Run& run, const Frame& frame, std::uint32_t lane);

  // Does a slice of a step whole or not at all.
  bool try_step(const BoundStep& step, const Frame& frame, std::uint64_t slice);
  bool hold(const BoundStep& step, Mark mark);
  // The message stays in the caller's buffer. False: it needs a slot, or there is no credit yet.
  bool lend(const HostTarget& target, const Frame& frame, Mark mark) const;
  // `reached`: a number that changes whenever a lane has completed a slice.
  void place_ahead(Run& run, const Frame& frame, std::uint64_t reached);

  // Slices of that lane that are complete.
  [[nodiscard]] std::uint64_t slices_done(const Run& run, std::uint32_t lane) const;
  [[nodiscard]] const std::vector<std::uint64_t>& done_of(const Run& run) const {
    return done_[run.operands.operation % kWindow];
  }
  [[nodiscard]] bool ran_through(const Run& run) const;
  [[nodiscard]] bool all_taken(std::uint64_t operation) const;
  [[nodiscard]] Wait waits_at(const Run& run, std::uint32_t lane, std::uint64_t slice) const;

  const BoundProgram program_;  // steps are lanes: each lane holds one
  const StepOrder order_;
  HostStreams streams_;
  std::unique_ptr<StepKernels> kernels_;
  std::unique_ptr<HostPlacing> placing_;
  std::unique_ptr<ShortSteps> short_;  // null: steps are general ones
  std::array<std::unique_ptr<std::byte, AlignedDelete>, kWindow> scratch_;
  std::array<std::vector<std::uint64_t>, kWindow> done_;  // readiness order: slices by lane
};

}  // namespace seto

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/result.h"
#include "src/device/reduce.h"
#include "src/engine/bound_program.h"
#include "src/engine/coding.h"

namespace seto {

// The memory from which a step reads and to which it writes one slice, before the offset of a piece. Targets that need no store
// (lent ones) are left out. The arrays are not cleared: that costs more than a short message.
struct StepPlaces {
  struct Written {
    std::byte* data;
    Store store;
  };
  void write(std::uint32_t target, Written place) {
    target_index[written] = target;
    targets[written++] = place;
  }

  std::array<const std::byte*, kMaxReduceSources> sources;
  std::array<Written, kMaxReduceTargets> targets;
  std::array<std::uint32_t, kMaxReduceTargets> target_index;
  std::uint32_t written = 0;
};

// The arithmetic of a bound program's steps on one slice, for all executors on a CPU, so that all of them give the same bits. The
// program must outlive this object. One thread at a time: encoding works in memory of its own.
class StepKernels final {
 public:
  static Result<std::unique_ptr<StepKernels>> create(const BoundProgram& program);

  // The values of this rank that an operation passes.
  struct Values {
    const void* scalar = nullptr;
    std::byte* residual = nullptr;  // null: encoding errors are dropped
  };
  void perform(const BoundStep& step, std::uint64_t slice, const StepPlaces& places, const Values& values);

  // Before the first operation with residuals.
  void expect_residuals() {
    if (coding_ != nullptr) coding_->expect_residuals();
  }

 private:
  explicit StepKernels(const BoundProgram& program);
  void perform_coded(const BoundStep& step, const ReduceCall& call, const StepPlaces& places, void* residual);

  const BoundProgram& program_;
  ReduceFunction reduce_;
  std::unique_ptr<Coding> coding_;  // null: the program has no codec
};

}  // namespace seto

#pragma once

#include <cstdint>
#include <string>

#include "src/base/types.h"
#include "src/device/reduce.h"

namespace seto {

// The buffers and the number of one operation.
struct Operands {
  const void* input = nullptr;
  void* output = nullptr;
  const void* scalar = nullptr;  // of this rank, in the accumulator type; null: nothing is scaled
  // Null: errors are dropped. Otherwise, after expect_residuals(): the residuals that this rank's encodings keep and add the next
  // time, one value of residual_type for each element of the input. One operation uses them at a time. Ignored without a codec.
  void* residual = nullptr;
  std::uint64_t operation = 0;
  // How slots and results are written on a host. A rank chooses this alone, each time anew.
  Store slots = Store::cached;
  Store results = Store::cached;
};

// Runs a bound program: any number of operations, of which kWindow may be under way. Nothing blocks. One thread at a time.
class Executor {
 public:
  // The execution of one operation: cheap to make, and kept by the caller that waits for it.
  struct Run {
    Operands operands;
    std::uint64_t steps = 0;  // done so far, each slice counted: it grows whenever something moved
    bool finished = false;

    // How far the executor is. Only the executor reads these.
    std::uint64_t round = 0;
    std::uint32_t lane = 0;
    std::uint64_t placed = 0;
  };

  virtual ~Executor() = default;

  // Continues as far as possible without waiting. Returns true once every step of every slice is done and no member reads lent
  // memory any more. Call again whenever something may have moved. `steps` limits the work of one call, so that one thread can
  // serve
  // several operations.
  virtual bool advance(Run& run, std::uint32_t steps) = 0;

  // After a failure, before the caller may have its buffers back: takes back what this operation lent, and nothing is received
  // into its buffers any more. Returns true once no member reads them. False: call again.
  virtual bool withdraw(const Run& run) = 0;

  // If all messages are short: how many steps at the beginning of a run send, and wait for no message. A caller may advance by so
  // many, do what need not be done before the peers have them, and go on. Otherwise 0.
  [[nodiscard]] virtual std::uint32_t first_sends() const { return 0; }

  // Before the first run with residuals. Allocates memory. Without a codec it does nothing.
  virtual void expect_residuals() = 0;

  // Describes for users what a blocked run waits for: slices and steps count from 1.
  struct Wait {
    Rank peer = -1;    // -1: it waits for no peer
    std::string text;  // "waits for slice 3 of 4 from rank 2"
    std::string step;  // "step 14 of 30"; empty: it waits at no step
  };
  [[nodiscard]] virtual Wait waits_at(const Run& run) const = 0;
};

}  // namespace seto

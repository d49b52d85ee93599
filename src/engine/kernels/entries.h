#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/device_program.h"
#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/interpreter.h"
#include "src/engine/kernels/marked_exchange.h"
#include "src/engine/kernels/threads.h"

namespace seto::kernels {

// A block either executes steps of a program, with flags and passes, or is an exchange of marked messages. After a program that
// was stopped it begins nothing more.
enum class Part : std::uint32_t { none, steps, exchange, stopped };

// Which program of the launch a block executes. It lies in memory that the threads of a block share: in registers, it would be
// there during every pass.
struct CurrentProgram {
  alignas(DeviceArguments) std::byte arguments[sizeof(DeviceArguments)];  // memory that blocks share has no constructors
  std::uint64_t exchange;                                                 // the number of the exchange that the program is
  std::uint32_t index;
  Part part;

  SETO_KERNEL const DeviceArguments& get() const { return *reinterpret_cast<const DeviceArguments*>(arguments); }
};

// Executes the programs of a launch as one block, one after another. All its threads run it alike; Number is the type of the
// programs (numbers.h).
//
// A program may read what the one before has written in parts of other blocks, and all of them use the same scratch memory and
// the same workspace. So a block begins a program when all blocks of the launch, which are resident, have ended the one before.
//
// The passes of all programs are in one loop. In a loop of their own for each program, ptxas kept up to 20 registers more.
template <class Number, Encoding kEncoding>
class BlockPrograms final {
 public:
  SETO_KERNEL BlockPrograms(const LaunchArguments& launch, BlockMemory& memory, CurrentProgram& current, std::uint32_t block)
      : launch_(launch), memory_(memory), current_(current), block_(block) {}

  SETO_KERNEL void run() {
    if (thread_index() == 0) set_program(0);
    barrier();
    Position position = begin();
    SETO_NO_UNROLL for (std::uint32_t set = 0;; set ^= 1) {
      if (current_.part == Part::steps && BlockSteps(current_.get(), memory_, block_, position, set).advance()) {
        run_pass(memory_.pass(set));
        position = memory_.positions[set];
        continue;
      }
      if constexpr (kEncoding == Encoding::none) {
        if (current_.part == Part::exchange) MarkedExchange<Number>(current_.get(), current_.exchange).run();
      }
      if (!go_on()) return;
      position = begin();
    }
  }

 private:
  [[nodiscard]] SETO_KERNEL const DeviceProgram& program() const { return *at<const DeviceProgram>(current_.get().program); }
  // The blocks that take part write the number when all of them have ended.
  [[nodiscard]] SETO_KERNEL Position begin() const {
    Position position{};
    if (current_.part == Part::steps) position.operation = at<WorkspaceBegin>(current_.get().workspace)->operation + 1;
    return position;
  }

  SETO_KERNEL void run_pass(const Pass& pass) const {
    if (pass.count == 0) return;
    if constexpr (kEncoding == Encoding::some) {
      if ((pass.coded_sources | pass.coded_targets) != 0 || pass.rounds) {
        coded_pass<Number>(static_cast<Codec>(program().codec - 1), pass);  // plans number codecs from 1
        return;
      }
    }
    reduce_pass<Number>(static_cast<ReduceOp>(program().op), pass);  // moves, too: two calls would double its code
  }

  SETO_KERNEL void set_program(std::uint32_t index) const {
    ::new (static_cast<void*>(current_.arguments)) DeviceArguments(launch_.programs[index]);
    current_.index = index;
    auto* const kept = at<WorkspaceBegin>(current_.get().workspace);
    if (load_relaxed(&kept->stopped) != 0) {
      current_.part = Part::stopped;
      return;
    }
    current_.part = block_ >= program().blocks ? Part::none : program().marked != 0 ? Part::exchange : Part::steps;
    // The last exchange of this rank was before the launch, or the same thread has counted it.
    if (current_.part == Part::exchange) current_.exchange = kept->exchanges + 1;
  }

  // False: all programs are done, or the launch was stopped.
  SETO_KERNEL bool go_on() const {
    if (current_.part == Part::stopped || current_.index + 1 == launch_.count) return false;
    barrier();  // all threads have done their part of the program
    return barrier_any(thread_index() == 0 && begin_next());
  }

  SETO_KERNEL bool begin_next() const {
    const std::uint32_t next = current_.index + 1;
    if (!wait_for_all_blocks(next)) return false;
    set_program(next);
    return true;
  }

  // The programs that are left of a launch never run, so later launches must not take their numbers.
  [[nodiscard]] SETO_KERNEL bool is_stopped() const {
    if (load_relaxed(at<std::uint32_t>(current_.get().stop)) == 0) return false;
    note_stop(current_.get());
    return true;
  }

  // A launch that was stopped leaves a count that is wrong for later ones. They do not count: a block that was stopped, here or
  // in a program, has noted it before the kernel ended, so later ones begin no program.
  SETO_KERNEL bool wait_for_all_blocks(std::uint32_t next) const {
    if (is_stopped()) return false;
    std::uint64_t* const arrivals = &at<WorkspaceBegin>(current_.get().workspace)->arrivals;
    constexpr std::uint64_t kRound = std::uint64_t{1} << kRoundBits;
    const std::uint64_t before = count_up(arrivals);
    if (before % kRound + 1 == launch_.blocks) {
      add_relaxed(arrivals, kRound - launch_.blocks);
      store_relaxed(at<std::uint64_t>(launch_.progress), word_of(LaunchProgress{launch_.number, next}));
      return true;
    }
    while (load_acquire(arrivals) >> kRoundBits == before >> kRoundBits) {
      if (is_stopped()) return false;
      wait_a_little();
    }
    return true;
  }

  const LaunchArguments& launch_;
  BlockMemory& memory_;
  CurrentProgram& current_;
  const std::uint32_t block_;
};

}  // namespace seto::kernels

// The entry kernel of one element type: each of its blocks executes the device programs of one rank. A file kernels_<name>.cu
// expands this once, so that the build compiles the kernels side by side. `name` is that of name_of(), which the library puts
// after "seto_run_" to find the kernel.
#define SETO_KERNEL_OF(kernel, type, encoding)                                                                        \
  extern "C" __global__ void __launch_bounds__(seto::kernels::kMostThreads, 1)                                        \
      kernel(const __grid_constant__ seto::kernels::LaunchArguments launch) {                                         \
    __shared__ seto::kernels::BlockMemory memory;                                                                     \
    __shared__ seto::kernels::CurrentProgram current;                                                                 \
    using Type = seto::kernels::Number<seto::DataType::type>;                                                         \
    seto::kernels::BlockPrograms<Type, seto::kernels::Encoding::encoding>(launch, memory, current, blockIdx.x).run(); \
  }

#define SETO_PLAIN_KERNEL(name, type) SETO_KERNEL_OF(seto_run_##name, type, none)
#define SETO_CODED_KERNEL(name, type) SETO_KERNEL_OF(seto_run_coded_##name, type, some)

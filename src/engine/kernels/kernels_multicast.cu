#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/interpreter.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/multicast/multicast_program.h"
#include "src/engine/kernels/multicast/multimem.h"
#include "src/engine/kernels/threads.h"
#include "src/engine/kernels/transfers.h"

namespace seto::kernels {

// Executes an all_reduce by NVLink multicast as one block. In each round the block has a piece of the call: it copies the piece
// into the memory of the library, meets the blocks of its number on all ranks, sums its rank's share of the piece for all ranks,
// meets them again, and copies the piece out. A block has one piece of memory: when it has met the others for the second time, no
// other rank reads or writes that memory before this rank begins the next round. All threads run it alike.
class MulticastBlock final {
 public:
  SETO_KERNEL MulticastBlock(const DeviceArguments& arguments, std::uint32_t block)
      : arguments_(arguments), program_(*at<const MulticastProgram>(arguments.program)), block_(block) {}

  SETO_KERNEL void run() const {
    const auto* const stopped = &at<WorkspaceBegin>(arguments_.workspace)->stopped;
    if (barrier_any(thread_index() == 0 && load_relaxed(stopped) != 0)) return;
    // The number of the last meeting, which this rank has stored to all, itself too: a launch before it did that.
    std::uint64_t meeting = *flag_of(program_.rank);
    std::byte* const own = at<std::byte>(program_.own + place());
    std::uint32_t round = 0;
    SETO_NO_UNROLL for (std::uint64_t begin = block_ * program_.piece; begin < program_.size;
                        begin += program_.blocks * program_.piece, ++round) {
      const std::uint64_t left = program_.size - begin;
      const std::uint64_t size = left < program_.piece ? left : program_.piece;
      move_bytes(at<const std::byte>(arguments_.input + begin), own, size);
      if (!meet(++meeting, round)) return;
      sum_share(size);
      if (!meet(++meeting, round)) return;
      move_bytes(own, at<std::byte>(arguments_.output + begin), size);
      barrier();  // another thread may copy the next piece over bytes that this thread has copied out
    }
  }

 private:
  // Where the memory of this block begins.
  SETO_KERNEL std::uint64_t place() const { return kMulticastFlags + block_ * program_.piece; }
  SETO_KERNEL std::uint64_t* flag_of(std::uint32_t rank) const {
    return at<std::uint64_t>(program_.own + multicast_flag(block_, rank));
  }

  // All that the block has read and written before precedes what the blocks of its number on all ranks do after it. It waits for
  // its own flag, too: then its own stores to all have come back from the switch. False: the block was stopped, and has reported
  // for whom it waited.
  SETO_KERNEL bool meet(std::uint64_t meeting, std::uint32_t round) const {
    fence_aliases();
    barrier();
    if (thread_index() == 0) store_release_to_all(program_.all + multicast_flag(block_, program_.rank), meeting);
    bool stopped = false;
    for (std::uint32_t rank = thread_index(); rank < program_.ranks && !stopped; rank += thread_count())
      stopped = !reaches(arguments_, block_, flag_of(rank), meeting, {rank, kWaitsForDone, round});
    return !barrier_any(stopped);
  }

  // The ranks have nearly equal shares of the piece. The last unit may have bytes behind the piece: their sum means nothing, and
  // is not copied out.
  SETO_KERNEL void sum_share(std::uint64_t size) const {
    const std::uint64_t units = (size + kMulticastUnit - 1) / kMulticastUnit;
    const std::uint64_t first = units * program_.rank / program_.ranks;
    const std::uint64_t end = units * (program_.rank + 1) / program_.ranks;
    switch (program_.sum) {
      case MulticastSum::float32:
        return sum_units<MulticastSum::float32>(first, end);
      case MulticastSum::float64:
        return sum_units<MulticastSum::float64>(first, end);
      case MulticastSum::float16:
        return sum_units<MulticastSum::float16>(first, end);
      case MulticastSum::bfloat16:
        return sum_units<MulticastSum::bfloat16>(first, end);
      case MulticastSum::integer32:
        return sum_units<MulticastSum::integer32>(first, end);
      case MulticastSum::integer64:
        return sum_units<MulticastSum::integer64>(first, end);
      case MulticastSum::none:
        return;
    }
  }

  template <MulticastSum kSum>
  SETO_KERNEL void sum_units(std::uint64_t first, std::uint64_t end) const {
    constexpr std::uint32_t kAtOnce = 4;
    const std::uint32_t threads = thread_count();
    const Address all = program_.all + place();
    std::uint64_t unit = first + thread_index();
    SETO_NO_UNROLL for (; unit + std::uint64_t{kAtOnce - 1} * threads < end; unit += std::uint64_t{kAtOnce} * threads) {
      Words sums[kAtOnce];
      SETO_UNROLL for (std::uint32_t k = 0; k < kAtOnce; ++k) sums[k] =
          sum_of_all<kSum>(all + (unit + std::uint64_t{k} * threads) * kMulticastUnit);
      SETO_UNROLL for (std::uint32_t k = 0; k < kAtOnce; ++k)
          store_to_all(all + (unit + std::uint64_t{k} * threads) * kMulticastUnit, sums[k]);
    }
    SETO_NO_UNROLL for (; unit < end; unit += threads)
        store_to_all(all + unit * kMulticastUnit, sum_of_all<kSum>(all + unit * kMulticastUnit));
  }

  const DeviceArguments& arguments_;
  const MulticastProgram& program_;
  const std::uint32_t block_;
};

}  // namespace seto::kernels

// All types in one kernel. A launch has one program.
extern "C" __global__ void __launch_bounds__(seto::kernels::kMostThreads, 1)
    seto_run_multicast(const __grid_constant__ seto::kernels::LaunchArguments launch) {
  seto::kernels::MulticastBlock(launch.programs[0], blockIdx.x).run();
}

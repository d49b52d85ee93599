#include "src/engine/block_interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/engine/block_channels.h"
#include "src/engine/step_kernels.h"

namespace seto {
namespace {

constexpr int kSpins = 2000;          // before the first yield, where every block has a core
constexpr int kYieldsPerClock = 256;  // a look at the clock costs more than a yield that finds nothing to run

struct RankMemory {
  std::unique_ptr<BlockCounter[]> progress;  // steps done, by lane
  std::vector<std::byte> scratch;
};

// The state that all blocks share: a device's global memory.
struct Grid {
  explicit Grid(const BlockRun& request) : run(request) {}

  void fail(Status status) {
    const std::lock_guard lock(failure_mutex);
    if (first_failure.ok()) first_failure = std::move(status);
    failed.store(true, std::memory_order_release);
  }

  const BlockRun& run;
  BlockChannels channels;
  std::vector<RankMemory> ranks;
  int spins = 0;
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  Status first_failure;
};

class Block {
 public:
  Block(Grid& grid, std::size_t rank, std::uint32_t lane, std::unique_ptr<StepKernels> kernels)
      : grid_(grid),
        rank_(rank),
        lane_(lane),
        program_(grid.run.programs[rank]),
        buffers_(grid.run.buffers[rank]),
        memory_(grid.ranks[rank]),
        kernels_(std::move(kernels)) {}

  void run() {
    const Lane& lane = program_.lanes[lane_];
    for (slice_ = 0; slice_ < program_.slices; ++slice_)
      for (step_ = 0; step_ < lane.step_count; ++step_) {
        const BoundStep& step = program_.steps[lane.first_step + step_];
        if (!wait_for_everything(step)) return;
        execute(step);
        announce(step);
      }
  }

 private:
  [[nodiscard]] const BlockChannels::End& end_of(std::uint32_t stream) const { return grid_.channels.ends[rank_][stream]; }

  // ---- waiting ----

  bool wait_for_everything(const BoundStep& step) {
    for (const Dependency& dependency : program_.dependencies_of(step)) {
      const std::uint64_t needed = slice_ * program_.lanes[dependency.lane].step_count + dependency.steps;
      const auto awaited = [&] { return std::to_string(dependency.steps) + " steps of lane " + std::to_string(dependency.lane); };
      if (!reaches(memory_.progress[dependency.lane], needed, awaited)) return false;
    }
    for (const BoundSource& source : program_.sources_of(step)) {
      if (source.space != Space::channel) continue;
      const BlockChannels::End& from = end_of(source.stream);
      const auto awaited = [&] { return "a message of rank " + std::to_string(from.channel->sender); };
      if (!reaches(from.channel->flags[from.receiver].posted, slice_ + 1, awaited)) return false;
    }
    for (const BoundTarget& target : program_.targets_of(step)) {
      if (target.space != Space::channel || slice_ < grid_.run.capacity) continue;
      BlockChannel& to = *end_of(target.stream).channel;
      for (std::size_t i = 0; i < to.receivers.size(); ++i) {
        const auto awaited = [&] { return "rank " + std::to_string(to.receivers[i]) + " to read a message"; };
        if (!reaches(to.flags[i].read, slice_ + 1 - grid_.run.capacity, awaited)) return false;
      }
    }
    return true;
  }

  template <class Describe>
  bool reaches(const BlockCounter& counter, std::uint64_t needed, Describe describe) {
    std::optional<Deadline> deadline;
    for (int turn = 0; counter.value.load(std::memory_order_acquire) < needed; ++turn) {
      if (turn < grid_.spins) continue;
      if (grid_.failed.load(std::memory_order_acquire)) return false;
      std::this_thread::yield();
      if (turn % kYieldsPerClock != 0) continue;
      if (!deadline) deadline = Deadline::after_ms(grid_.run.timeout_ms);
      if (!deadline->passed()) continue;
      report(describe(), counter.value.load(std::memory_order_acquire), needed);
      return false;
    }
    return true;
  }

  void report(const std::string& awaited, std::uint64_t has, std::uint64_t needed) {
    grid_.fail(failure(Code::timeout, "rank %zu, lane %u, step %u, slice %ju: waited %ju ms for %s (at %ju of %ju)", rank_, lane_,
                       step_, std::uintmax_t{slice_}, std::uintmax_t{grid_.run.timeout_ms}, awaited.c_str(), std::uintmax_t{has},
                       std::uintmax_t{needed}));
  }

  // ---- working ----

  // Where the slice begins, before the offset of a piece.
  [[nodiscard]] std::byte* address(Space space, std::uint32_t stream) const {
    const std::uint64_t begin = slice_ * program_.slice_elements * program_.element_size;
    switch (space) {
      case Space::input:  // a source, never written
        return const_cast<std::byte*>(static_cast<const std::byte*>(buffers_.input)) + begin;
      case Space::output:
        return static_cast<std::byte*>(buffers_.output) + begin;
      case Space::scratch:
        return memory_.scratch.data() + begin;
      case Space::channel:
        break;
    }
    BlockChannel& channel = *end_of(stream).channel;
    return channel.slots.data() + slice_ % grid_.run.capacity * channel.slot_size;
  }

  void execute(const BoundStep& step) {
    StepPlaces places;
    for (std::uint32_t i = 0; i < step.source_count; ++i) {
      const BoundSource& source = program_.sources[step.first_source + i];
      places.sources[i] = address(source.space, source.stream);
    }
    for (std::uint32_t i = 0; i < step.target_count; ++i) {
      const BoundTarget& target = program_.targets[step.first_target + i];
      places.write(i, {address(target.space, target.stream), Store::cached});
    }
    kernels_->perform(step, slice_, places, {buffers_.scalar, static_cast<std::byte*>(buffers_.residual)});
  }

  void announce(const BoundStep& step) {
    for (const BoundSource& source : program_.sources_of(step)) {
      if (source.space != Space::channel) continue;
      const BlockChannels::End& from = end_of(source.stream);
      from.channel->flags[from.receiver].read.value.store(slice_ + 1, std::memory_order_release);
    }
    for (const BoundTarget& target : program_.targets_of(step)) {
      if (target.space != Space::channel) continue;
      BlockChannel& to = *end_of(target.stream).channel;
      for (std::size_t i = 0; i < to.receivers.size(); ++i) to.flags[i].posted.value.store(slice_ + 1, std::memory_order_release);
    }
    std::atomic<std::uint64_t>& progress = memory_.progress[lane_].value;
    progress.store(progress.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Grid& grid_;
  std::size_t rank_;
  std::uint32_t lane_;
  const BoundProgram& program_;
  const BlockBuffers& buffers_;
  RankMemory& memory_;
  std::unique_ptr<StepKernels> kernels_;
  std::uint64_t slice_ = 0;
  std::uint32_t step_ = 0;  // of the lane
};

Status check(const BlockRun& run) {
  if (run.programs.empty() || run.buffers.size() != run.programs.size() || run.capacity == 0)
    return failure(Code::invalid_argument, "blocks need buffers for each of %zu ranks, and a capacity above 0",
                   run.programs.size());
  std::size_t blocks = 0;
  for (std::size_t rank = 0; rank < run.programs.size(); ++rank) {
    const BoundProgram& program = run.programs[rank];
    if (program.rank != static_cast<Rank>(rank))
      return failure(Code::invalid_argument, "the program at place %zu is of rank %d: programs stand in the order of ranks", rank,
                     program.rank);
    blocks += program.lanes.size();
    if (program.codec != 0 && !program.skewed)
      return failure(Code::invalid_usage, "rank %d: a plain program with a codec loses encoded bytes between its steps; lower it",
                     program.rank);
  }
  if (blocks > kMaxBlocks)
    return failure(Code::invalid_usage, "%zu lanes need a block each, the limit is %u", blocks, kMaxBlocks);
  return {};
}

// One thread for each block. The first that cannot be started ends the others.
void run_threads(Grid& grid, std::vector<Block>& blocks) {
  std::vector<std::thread> threads;
  threads.reserve(blocks.size());
  for (Block& block : blocks) {
    try {
      threads.emplace_back([&block] { block.run(); });
    } catch (const std::system_error& error) {
      grid.fail(failure(Code::unavailable, "block %zu of %zu: no thread (%s)", threads.size(), blocks.size(), error.what()));
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

Status run_blocks(const BlockRun& run) {
  SETO_TRY(check(run));
  Grid grid(run);
  SETO_ASSIGN(grid.channels, BlockChannels::join(run.programs, run.capacity));
  grid.ranks.resize(run.programs.size());
  for (std::size_t rank = 0; rank < run.programs.size(); ++rank) {
    grid.ranks[rank].progress = std::make_unique<BlockCounter[]>(run.programs[rank].lanes.size());
    grid.ranks[rank].scratch.resize(run.programs[rank].scratch_size);
  }
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < run.programs.size(); ++rank)
    for (std::uint32_t lane = 0; lane < run.programs[rank].lanes.size(); ++lane) {
      SETO_ASSIGN(auto kernels, StepKernels::create(run.programs[rank]));
      blocks.emplace_back(grid, rank, lane, std::move(kernels));
    }
  grid.spins = blocks.size() <= std::thread::hardware_concurrency() ? kSpins : 0;
  run_threads(grid, blocks);
  return grid.first_failure;
}

}  // namespace seto

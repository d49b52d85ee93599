#include "src/engine/block_interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/device/reduce.h"
#include "src/plan/channel_index.h"

namespace seto {
namespace {

constexpr int kSpins = 2000;          // before the first yield, where every block has a core
constexpr int kYieldsPerClock = 256;  // looks at the clock cost more than a yield that finds nothing to run

struct alignas(64) Counter {
  std::atomic<std::uint64_t> value{0};
};

struct Flags {  // of one channel and one of its receivers
  Counter posted;
  Counter read;
};

struct GlobalChannel {
  const JoinedChannel* ends = nullptr;
  std::vector<std::byte> slots;
  std::size_t slot_size = 0;
  std::unique_ptr<Flags[]> flags;  // by receiver, in the order of `ends`
};

struct RankMemory {
  std::unique_ptr<Counter[]> progress;  // by lane
  std::vector<std::byte> scratch;
};

struct Grid {  // what all blocks share: a device's global memory
  explicit Grid(const BlockRun& request) : run(request) {}

  void fail(Status status) {
    const std::lock_guard lock(failure_mutex);
    if (first_failure.ok()) first_failure = std::move(status);
    failed.store(true, std::memory_order_release);
  }

  const BlockRun& run;
  ChannelIndex index;
  std::vector<GlobalChannel> channels;
  std::vector<RankMemory> ranks;
  std::uint64_t slice_length = 1;
  std::uint64_t slices = 1;
  std::uint64_t chunk_stride = 0;  // elements of a scratch chunk
  ReduceFunction reduce = nullptr;
  int spins = 0;
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  Status first_failure;
};

class Block {
 public:
  Block(Grid& grid, Rank rank, std::uint32_t lane)
      : grid_(grid),
        program_(grid.run.plan.programs[static_cast<std::size_t>(rank)]),
        layout_(grid.run.layouts[static_cast<std::size_t>(rank)]),
        buffers_(grid.run.buffers[static_cast<std::size_t>(rank)]),
        memory_(grid.ranks[static_cast<std::size_t>(rank)]),
        lane_(lane) {}

  void run() {
    const Lane& lane = program_.lanes[lane_];
    for (slice_ = 0; slice_ < grid_.slices; ++slice_)
      for (step_ = lane.first_step; step_ < lane.first_step + lane.step_count; ++step_) {
        const Step& step = program_.steps[step_];
        if (!wait_for_everything(step)) return;
        execute(step);
        announce(step);
      }
  }

 private:
  GlobalChannel& channel(const Operand& operand) const {
    const auto& mine = grid_.index.of_program[static_cast<std::size_t>(program_.rank)];
    return grid_.channels[mine[operand.index]];
  }

  std::size_t receiver_index(const GlobalChannel& channel) const {
    std::size_t i = 0;
    while (channel.ends->receivers[i].rank != program_.rank) ++i;
    return i;
  }

  // ---- waiting
  // -----------------------------------------------------------------------------------------------------------------

  bool wait_for_everything(const Step& step) {
    for (const Dependency& dependency : program_.dependencies_of(step)) {
      const std::uint64_t needed = slice_ * program_.lanes[dependency.lane].step_count + dependency.steps;
      const auto awaited = [&] { return std::to_string(dependency.steps) + " steps of lane " + std::to_string(dependency.lane); };
      if (!reaches(memory_.progress[dependency.lane], needed, awaited)) return false;
    }
    for (const Operand& source : program_.sources(step)) {
      if (source.space != Space::channel) continue;
      GlobalChannel& from = channel(source);
      const auto awaited = [&] { return "a message of rank " + std::to_string(from.ends->sender.rank); };
      if (!reaches(from.flags[receiver_index(from)].posted, slice_ + 1, awaited)) return false;
    }
    for (const Operand& target : program_.targets(step)) {
      if (target.space != Space::channel || slice_ < grid_.run.capacity) continue;
      GlobalChannel& to = channel(target);
      for (std::size_t i = 0; i < to.ends->receivers.size(); ++i) {
        const auto awaited = [&] { return "rank " + std::to_string(to.ends->receivers[i].rank) + " to read a message"; };
        if (!reaches(to.flags[i].read, slice_ + 1 - grid_.run.capacity, awaited)) return false;
      }
    }
    return true;
  }

  template <class Describe>
  bool reaches(const Counter& counter, std::uint64_t needed, Describe describe) {
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
    const Step& step = program_.steps[step_];
    const std::string_view verb = name_of(step.verb);
    grid_.fail(failure(Code::timeout,
                       "rank %d, lane %u, step %u (%.*s of chunks %u+%u), slice %ju: waited %ju ms for %s (at %ju of %ju)",
                       program_.rank, lane_, step_ - program_.lanes[lane_].first_step, static_cast<int>(verb.size()), verb.data(),
                       step.chunk, step.count, std::uintmax_t{slice_}, std::uintmax_t{grid_.run.timeout_ms}, awaited.c_str(),
                       std::uintmax_t{has}, std::uintmax_t{needed}));
  }

  // ---- working
  // -----------------------------------------------------------------------------------------------------------------

  // Chunk i of an operand, from the slice's begin on.
  std::byte* address(const Operand& operand, std::uint32_t i, const Extent& extent) const {
    const std::size_t size = size_of(grid_.run.type);
    switch (operand.space) {
      case Space::input: {
        const std::uint64_t offset = layout_.input_offset(operand.index + i) + extent.begin;
        return const_cast<std::byte*>(static_cast<const std::byte*>(buffers_.input)) + offset * size;  // a source, never written
      }
      case Space::output:
        return static_cast<std::byte*>(buffers_.output) + (layout_.output_offset(operand.index + i) + extent.begin) * size;
      case Space::scratch:
        return memory_.scratch.data() + ((operand.index + i) * grid_.chunk_stride + extent.begin) * size;
      case Space::channel:
        break;
    }
    GlobalChannel& through = channel(operand);
    return through.slots.data() + slice_ % grid_.run.capacity * through.slot_size + i * grid_.slice_length * size;
  }

  void execute(const Step& step) {
    const void* sources[kMaxReduceSources];
    ReduceTarget targets[kMaxReduceTargets];
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const Extent extent = layout_.slice(step.chunk + i, slice_, grid_.slice_length);
      if (extent.length == 0) continue;
      ReduceCall call{sources, 0, targets, 0, static_cast<std::size_t>(extent.length), 0, buffers_.scalar, 1};
      for (const Operand& source : program_.sources(step)) {
        if (source.scaled || step.verb == Verb::scale) call.scaled_sources |= std::uint64_t{1} << call.source_count;
        sources[call.source_count++] = address(source, i, extent);
      }
      for (const Operand& target : program_.targets(step))
        targets[call.target_count++] = {address(target, i, extent), Store::cached};
      if (step.finishes || step.verb == Verb::finish) call.divisor = static_cast<std::uint32_t>(grid_.run.plan.shape.ranks);
      grid_.reduce(call);
    }
  }

  void announce(const Step& step) {
    for (const Operand& source : program_.sources(step)) {
      if (source.space != Space::channel) continue;
      GlobalChannel& from = channel(source);
      from.flags[receiver_index(from)].read.value.store(slice_ + 1, std::memory_order_release);
    }
    for (const Operand& target : program_.targets(step)) {
      if (target.space != Space::channel) continue;
      GlobalChannel& to = channel(target);
      for (std::size_t i = 0; i < to.ends->receivers.size(); ++i)
        to.flags[i].posted.value.store(slice_ + 1, std::memory_order_release);
    }
    std::atomic<std::uint64_t>& progress = memory_.progress[lane_].value;
    progress.store(progress.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Grid& grid_;
  const Program& program_;
  const Layout& layout_;
  const BlockBuffers& buffers_;
  RankMemory& memory_;
  std::uint32_t lane_;
  std::uint64_t slice_ = 0;
  std::uint32_t step_ = 0;
};

Status check(const BlockRun& run) {
  SETO_TRY(check_structure(run.plan));
  if (run.plan.shape.codec != 0) return failure(Code::invalid_usage, "the block interpreter has no codecs yet");
  const std::size_t ranks = run.plan.programs.size();
  if (run.layouts.size() != ranks || run.buffers.size() != ranks || run.slice_length == 0 || run.capacity == 0)
    return failure(Code::invalid_argument,
                   "blocks need a layout and buffers for each of %zu ranks, a slice length and a capacity", ranks);
  std::size_t blocks = 0;
  for (const Program& program : run.plan.programs) {
    blocks += program.lanes.size();
    for (const Step& step : program.steps) {
      if (step.source_count > kMaxReduceSources || step.target_count > kMaxReduceTargets)
        return failure(Code::invalid_usage, "rank %d: a step of %u sources and %u targets, limits %u and %u", program.rank,
                       step.source_count, step.target_count, kMaxReduceSources, kMaxReduceTargets);
    }
  }
  if (blocks > kMaxBlocks)
    return failure(Code::invalid_usage, "%zu lanes need a block each, the limit is %u", blocks, kMaxBlocks);
  return {};
}

Status lay_out(Grid& grid) {
  const BlockRun& run = grid.run;
  SETO_ASSIGN(grid.index, join_channels(run.plan));
  for (const Layout& layout : run.layouts) grid.chunk_stride = std::max(grid.chunk_stride, layout.longest());
  grid.slice_length = std::clamp<std::uint64_t>(grid.chunk_stride, 1, run.slice_length);
  grid.slices = run.layouts.front().slices(grid.slice_length);
  grid.channels.resize(grid.index.channels.size());
  for (std::size_t i = 0; i < grid.channels.size(); ++i) {
    GlobalChannel& channel = grid.channels[i];
    channel.ends = &grid.index.channels[i];
    const JoinedChannel::End& sender = channel.ends->sender;
    const std::uint32_t chunks = run.plan.programs[static_cast<std::size_t>(sender.rank)].steps[sender.step].count;
    channel.slot_size = chunks * static_cast<std::size_t>(grid.slice_length) * size_of(run.type);
    channel.slots.resize(channel.slot_size * run.capacity);
    channel.flags = std::make_unique<Flags[]>(channel.ends->receivers.size());
  }
  grid.ranks.resize(run.plan.programs.size());
  for (std::size_t rank = 0; rank < grid.ranks.size(); ++rank) {
    const Program& program = run.plan.programs[rank];
    grid.ranks[rank].progress = std::make_unique<Counter[]>(program.lanes.size());
    grid.ranks[rank].scratch.resize(program.scratch_chunks * static_cast<std::size_t>(grid.chunk_stride) * size_of(run.type));
  }
  grid.reduce = reduce_function(run.type, run.op);
  return {};
}

}  // namespace

Status run_blocks(const BlockRun& run) {
  SETO_TRY(check(run));
  Grid grid(run);
  SETO_TRY(lay_out(grid));
  std::vector<Block> blocks;
  for (const Program& program : run.plan.programs)
    for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane) blocks.emplace_back(grid, program.rank, lane);
  grid.spins = blocks.size() <= std::thread::hardware_concurrency() ? kSpins : 0;
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
  return grid.first_failure;
}

}  // namespace seto

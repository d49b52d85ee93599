#include <algorithm>

#include "src/plan/verify_values.h"

namespace seto {
namespace {

// Execution by counters. A step can only enable others, so one greedy run decides: if it finishes, every run does.
class CountedRun {
 public:
  CountedRun(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request)
      : plan_(plan), index_(index), request_(request), sent_(index.channels.size(), 0), taken_(index.channels.size()) {
    std::uint32_t stages = 1;
    for (const Program& program : plan.programs) {
      stages = std::max(stages, program.stages());
      done_.emplace_back(program.lanes.size(), 0);
    }
    for (std::size_t i = 0; i < taken_.size(); ++i) taken_[i].assign(index.channels[i].receivers.size(), 0);
    slices_ = request.order == StepOrder::skewed ? stages + request.capacity + 1 : request.capacity + 2;
  }

  Status run() {
    if (request_.order == StepOrder::skewed) SETO_TRY(find_skewed_orders());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank)
        while (request_.order == StepOrder::skewed ? advance_skewed(rank) : advance_any(rank)) moved = true;
    }
    for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank)
      for (std::size_t lane = 0; lane < done_[rank].size(); ++lane)
        if (done_[rank][lane] < std::uint64_t{slices_} * plan_.programs[rank].lanes[lane].step_count)
          return failure(Code::internal, "stuck at channel capacity %u: rank %zu, lane %zu, after %llu steps", request_.capacity,
                         rank, lane, static_cast<unsigned long long>(done_[rank][lane]));
    return {};
  }

 private:
  // The position of the one worker of a rank in the skewed order.
  struct Worker {
    SkewedOrder order;
    std::uint64_t round = 0;
    std::uint32_t lane = 0;
  };

  Status find_skewed_orders() {
    for (const Program& program : plan_.programs) {
      SETO_ASSIGN(SkewedOrder order, SkewedOrder::of(program));
      workers_.push_back({std::move(order), 0, 0});
    }
    return {};
  }

  bool advance_any(std::size_t rank) {
    const Program& program = plan_.programs[rank];
    bool moved = false;
    for (std::uint32_t lane = 0; lane < program.lanes.size(); ++lane) {
      const std::uint32_t length = program.lanes[lane].step_count;
      if (length == 0) continue;
      while (done_[rank][lane] < std::uint64_t{slices_} * length) {
        const auto step = program.lanes[lane].first_step + static_cast<std::uint32_t>(done_[rank][lane] % length);
        if (!try_step(rank, lane, step, static_cast<std::uint32_t>(done_[rank][lane] / length))) break;
        moved = true;
      }
    }
    return moved;
  }

  bool advance_skewed(std::size_t rank) {
    const Program& program = plan_.programs[rank];
    Worker& worker = workers_[rank];
    bool moved = false;
    for (; worker.round < worker.order.rounds(slices_); ++worker.round, worker.lane = 0) {
      const SkewedOrder::Lanes lanes = worker.order.lanes_of(worker.round, slices_);
      for (worker.lane = std::max(worker.lane, lanes.first); worker.lane < lanes.end; ++worker.lane) {
        const std::uint32_t step = program.lanes[worker.lane].first_step;
        const std::uint64_t slice = SkewedOrder::slice_of(worker.round, program.steps[step].stage);
        if (!try_step(rank, worker.lane, step, static_cast<std::uint32_t>(slice))) return moved;
        moved = true;
      }
    }
    return moved;
  }

  bool try_step(std::size_t rank, std::uint32_t lane, std::uint32_t index, std::uint32_t slice) {
    const Program& program = plan_.programs[rank];
    const Step& step = program.steps[index];
    for (const Dependency& dependency : program.dependencies_of(step)) {
      const std::uint32_t length = program.lanes[dependency.lane].step_count;
      if (dependency.steps > 0 && done_[rank][dependency.lane] < std::uint64_t{slice} * length + dependency.steps) return false;
    }
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel && sent_[channel(rank, source)] <= slice) return false;
    for (const Operand& target : program.targets(step)) {
      if (target.space != Space::channel) continue;
      const auto& taken = taken_[channel(rank, target)];
      if (slice >= *std::min_element(taken.begin(), taken.end()) + request_.capacity) return false;
    }
    for (const Operand& source : program.sources(step))
      if (source.space == Space::channel) ++taken_[channel(rank, source)][receiver(rank, source, index)];
    for (const Operand& target : program.targets(step))
      if (target.space == Space::channel) ++sent_[channel(rank, target)];
    ++done_[rank][lane];
    return true;
  }

  std::uint32_t channel(std::size_t rank, const Operand& operand) const { return index_.of_program[rank][operand.index]; }
  std::size_t receiver(std::size_t rank, const Operand& operand, std::uint32_t step) const {
    const auto& ends = index_.channels[channel(rank, operand)].receivers;
    const auto end = std::find_if(ends.begin(), ends.end(), [&](const JoinedChannel::End& e) {
      return e.rank == static_cast<Rank>(rank) && e.step == step;
    });
    return static_cast<std::size_t>(end - ends.begin());
  }

  const Plan& plan_;
  const ChannelIndex& index_;
  const VerifyRequest& request_;
  std::vector<std::uint64_t> sent_;                // by channel: slices sent
  std::vector<std::vector<std::uint64_t>> taken_;  // by channel and receiver
  std::vector<std::vector<std::uint64_t>> done_;   // by rank and lane: steps done, over all slices
  std::vector<Worker> workers_;                    // by rank, in skewed order
  std::uint32_t slices_ = 1;
};

}  // namespace

Status verify_progress(const Plan& plan, const ChannelIndex& index, const VerifyRequest& request) {
  return CountedRun(plan, index, request).run();
}

}  // namespace seto

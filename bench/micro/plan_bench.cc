// The cost of building, lowering, verifying and interpreting programs, by rank count.

#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "bench/micro/ready_circle.h"
#include "src/base/check.h"
#include "src/engine/host_executor.h"
#include "src/engine/lowering.h"
#include "src/plan/verify.h"

namespace {

using namespace seto;

struct Subject {
  const Algorithm* algorithm;
  Shape shape;
  Tiers tiers;
};

// Nodes of 8 ranks and sites of 16 nodes, if there are enough ranks to fill them.
Tiers tiers_of(int ranks) {
  std::vector<Home> homes(static_cast<std::size_t>(ranks));
  for (std::uint32_t r = 0; r < homes.size(); ++r) homes[r] = {r / 8, r / 128};
  return Tiers::of(homes);
}

Subject subject(const char* name, int ranks) {
  const Algorithm* algorithm = find_algorithm(name, Collective::all_reduce);
  SETO_CHECK(algorithm != nullptr);
  Shape shape{Collective::all_reduce, ranks, 0, 1, Finish::none};
  const Tiers tiers = tiers_of(ranks);
  shape.pieces = algorithm->pieces(shape, tiers);
  return {algorithm, shape, tiers};
}

void build(benchmark::State& state, const char* name) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  std::size_t steps = 0;
  for (auto _ : state) {
    const Program program = build_program(*of.algorithm, of.shape, of.tiers, of.shape.ranks / 2, InPlace::no);
    steps = program.steps.size();
    benchmark::DoNotOptimize(steps);
  }
  state.counters["steps"] = static_cast<double>(steps);
}

void lower_one(benchmark::State& state, const char* name) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  const Program plain = build_program(*of.algorithm, of.shape, of.tiers, of.shape.ranks / 2, InPlace::no);
  std::size_t steps = 0;
  for (auto _ : state) {
    const Program program = lower(plain, of.shape, InPlace::no, {LoweringRules::Chains::fold});
    steps = program.steps.size();
    benchmark::DoNotOptimize(steps);
  }
  state.counters["steps"] = static_cast<double>(steps);
}

// Verifies the plain programs of all ranks.
void verify_all(benchmark::State& state, const char* name) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  const Plan plan = build_plan(*of.algorithm, of.shape, of.tiers, {});
  const VerifyRequest request;
  for (auto _ : state) SETO_CHECK(verify(plan, request).ok());
}

// The CPU time of this thread. Interpretation waits for no other thread, so other load of the machine is not counted.
double thread_ns() {
  timespec time{};
  SETO_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Runs the host engine over streams that are always ready. Without elements no kernel is called, so the time is that of
// interpretation and of the calls to streams.
void interpret(benchmark::State& state, const char* name, std::uint64_t elements) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  const Rank rank = of.shape.ranks / 2;
  const Program plain = build_program(*of.algorithm, of.shape, of.tiers, rank, InPlace::no);
  const Program program = lower(plain, of.shape, InPlace::no, rules_for(DataType::float32));
  const Layout layout = Layout::uniform(of.shape, rank, elements * of.shape.pieces, 1);
  ReadyPeerGroup peer_group(static_cast<std::uint32_t>(of.shape.ranks));
  BindRequest request;
  request.program = &program;
  request.shape = of.shape;
  request.layout = &layout;
  request.tuning = {1, 2};
  BoundProgram bound = bind_program(request).value();
  const std::unique_ptr<Executor> executor =
      std::move(HostExecutor::open(std::move(bound), StepOrder::skewed, peer_group)).value();
  std::vector<float> input(elements * of.shape.pieces + 1), output(elements * of.shape.pieces + 1);
  std::uint64_t operation = 0;
  const double start_ns = thread_ns();
  for (auto _ : state) {
    Executor::Run run;
    run.operands.input = input.data();
    run.operands.output = output.data();
    run.operands.operation = ++operation;
    while (!executor->advance(run, 64)) {
    }
  }
  const double ns = thread_ns() - start_ns;
  const auto steps = static_cast<double>(program.steps.size() * layout.slices(request.tuning.slice_elements));
  state.counters["steps"] = steps;
  state.counters["step_ns"] = ns / static_cast<double>(state.iterations()) / steps;
}

void fused_step(benchmark::State& state, const char* name) { interpret(state, name, 0); }
// With kernels, over slices of one element, so the time includes their calls.
void with_kernels(benchmark::State& state, const char* name) { interpret(state, name, 64); }

void few(benchmark::internal::Benchmark* bench) {
  bench->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMicrosecond);
}
void many(benchmark::internal::Benchmark* bench) { bench->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond); }
void verified(benchmark::internal::Benchmark* bench) { bench->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Unit(benchmark::kMicrosecond); }

void small(benchmark::internal::Benchmark* bench) { bench->Arg(2)->Arg(4)->Arg(8); }

BENCHMARK_CAPTURE(fused_step, one_shot, "one_shot")->Apply(small);
BENCHMARK_CAPTURE(fused_step, two_shot, "two_shot")->Apply(small);
BENCHMARK_CAPTURE(fused_step, ring, "ring")->Apply(small);
BENCHMARK_CAPTURE(fused_step, double_tree, "double_tree")->Apply(small);
BENCHMARK_CAPTURE(with_kernels, one_shot, "one_shot")->Apply(small);
BENCHMARK_CAPTURE(with_kernels, two_shot, "two_shot")->Apply(small);
BENCHMARK_CAPTURE(with_kernels, ring, "ring")->Apply(small);
BENCHMARK_CAPTURE(build, two_shot, "two_shot")->Apply(few);
BENCHMARK_CAPTURE(build, ring, "ring")->Apply(few);
BENCHMARK_CAPTURE(build, double_tree, "double_tree")->Apply(few);
BENCHMARK_CAPTURE(build, hierarchical, "hierarchical")->Apply(many);
BENCHMARK_CAPTURE(lower_one, two_shot, "two_shot")->Apply(few);
BENCHMARK_CAPTURE(lower_one, ring, "ring")->Apply(few);
BENCHMARK_CAPTURE(lower_one, double_tree, "double_tree")->Apply(few);
BENCHMARK_CAPTURE(lower_one, hierarchical, "hierarchical")->Apply(many);
BENCHMARK_CAPTURE(verify_all, two_shot, "two_shot")->Apply(verified);
BENCHMARK_CAPTURE(verify_all, ring, "ring")->Apply(verified);

}  // namespace

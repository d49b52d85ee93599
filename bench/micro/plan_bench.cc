// What it costs to build, lower, verify and interpret programs, by rank count.

#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "bench/micro/ready_circle.h"
#include "src/base/check.h"
#include "src/engine/host_launch.h"
#include "src/engine/lowering.h"
#include "src/plan/verify.h"

namespace {

using namespace seto;

struct Subject {
  const Algorithm* algorithm;
  Shape shape;
  Tiers tiers;
};

// Nodes of 8, sites of 16 nodes, where so many ranks fill them.
Tiers tiers_of(int ranks) {
  std::vector<Home> homes(static_cast<std::size_t>(ranks));
  for (std::uint32_t r = 0; r < homes.size(); ++r) homes[r] = {r / 8, r / 128};
  return Tiers::of(homes);
}

Subject subject(const char* name, int ranks) {
  const Algorithm* algorithm = find_algorithm(name, Collective::all_reduce);
  SETO_CHECK(algorithm != nullptr);
  Shape shape{Collective::all_reduce, ranks, 0, 1, Finish::none};
  shape.pieces = algorithm->pieces(shape);
  return {algorithm, shape, tiers_of(ranks)};
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

// All ranks' programs, plain.
void verify_all(benchmark::State& state, const char* name) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  const Plan plan = build_plan(*of.algorithm, of.shape, of.tiers, {});
  const VerifyRequest request;
  for (auto _ : state) SETO_CHECK(verify(plan, request).ok());
}

// Of this thread alone: interpretation waits for nobody, so that other load of the machine is not counted.
double thread_ns() {
  timespec time{};
  SETO_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// The host engine over streams that are always ready. Without elements no kernel is called: what is left is interpretation, the
// calls of the streams included.
void interpret(benchmark::State& state, const char* name, std::uint64_t elements) {
  const Subject of = subject(name, static_cast<int>(state.range(0)));
  const Rank rank = of.shape.ranks / 2;
  const Program plain = build_program(*of.algorithm, of.shape, of.tiers, rank, InPlace::no);
  const Program program = lower(plain, of.shape, InPlace::no, rules_for(DataType::float32));
  const Layout layout = Layout::uniform(of.shape, rank, elements * of.shape.pieces, 1);
  ReadyCircle circle(static_cast<std::uint32_t>(of.shape.ranks));
  BindRequest request;
  request.program = &program;
  request.shape = of.shape;
  request.layout = &layout;
  request.tuning = {1, 2};
  const std::unique_ptr<HostLaunch> launch = std::move(HostLaunch::bind(request, circle)).value();
  std::vector<float> input(elements * of.shape.pieces + 1), output(elements * of.shape.pieces + 1);
  std::uint64_t operation = 0;
  const double start_ns = thread_ns();
  for (auto _ : state) {
    HostLaunch::Run run;
    run.operands.input = input.data();
    run.operands.output = output.data();
    run.operands.operation = ++operation;
    while (!launch->advance(run, 64)) {
    }
  }
  const double ns = thread_ns() - start_ns;
  const auto steps = static_cast<double>(program.steps.size() * layout.slices(request.tuning.slice_elements));
  state.counters["steps"] = steps;
  state.counters["step_ns"] = ns / static_cast<double>(state.iterations()) / steps;
}

void fused_step(benchmark::State& state, const char* name) { interpret(state, name, 0); }
// With kernels, over slices of one element: their calls are on top.
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

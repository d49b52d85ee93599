// What it costs to build, lower and verify programs, by rank count.

#include <benchmark/benchmark.h>

#include "algorithms/algorithm.h"
#include "src/base/check.h"
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

void few(benchmark::internal::Benchmark* bench) {
  bench->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMicrosecond);
}
void many(benchmark::internal::Benchmark* bench) { bench->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond); }
void verified(benchmark::internal::Benchmark* bench) { bench->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Unit(benchmark::kMicrosecond); }

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

// One plan, several executors: the block interpreter gives the bits of a reference, the simulator the times of closed formulas.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "algorithms/algorithm.h"
#include "src/engine/block_interpreter.h"
#include "src/engine/bound_program.h"
#include "src/engine/lowering.h"
#include "src/engine/simulation/simulated_engine.h"

namespace seto {
namespace {

constexpr unsigned kSeed = 41;

// Ranks 0 and 1 are on one node, 2 and 3 on the next; each site has two nodes.
Tiers tiers_of(std::string_view algorithm, int ranks) {
  if (algorithm != "hierarchical") return Tiers::flat(ranks);
  std::vector<Home> homes;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) homes.push_back({rank / 2, rank / 4});
  return Tiers::of(homes);
}

Plan all_reduce(std::string_view name, int ranks, const std::vector<InPlace>& in_place, Finish finish = Finish::none) {
  const Algorithm& algorithm = *find_algorithm(name, Collective::all_reduce);
  Shape shape{Collective::all_reduce, ranks, 0, 1, finish};
  shape.pieces = algorithm.pieces(shape, tiers_of(name, ranks));
  return build_plan(algorithm, shape, tiers_of(name, ranks), in_place);
}

Plan lowered(const Plan& plan, const std::vector<InPlace>& in_place) {
  Plan result{plan.name, plan.shape, {}};
  for (const Program& program : plan.programs)
    result.programs.push_back(
        lower(program, plan.shape, in_place[static_cast<std::size_t>(program.rank)], rules_for(DataType::float32)));
  return result;
}

std::vector<Layout> layouts_of(const Shape& shape, std::uint64_t count) {
  std::vector<Layout> layouts;
  for (Rank rank = 0; rank < shape.ranks; ++rank) layouts.push_back(Layout::uniform(shape, rank, count, 1));
  return layouts;
}

// ---- blocks ----

struct Binding {
  std::uint64_t count = 0;
  std::uint64_t slice_elements = 1;
  DataType type = DataType::float32;
};

std::vector<BoundProgram> bound(const Plan& plan, const std::vector<InPlace>& in_place, const Binding& binding) {
  std::vector<BoundProgram> programs;
  const std::vector<Layout> layouts = layouts_of(plan.shape, binding.count);
  for (const Program& program : plan.programs) {
    const auto rank = static_cast<std::size_t>(program.rank);
    Result<BoundProgram> one = bind_program(
        {&program, plan.shape, in_place[rank], &layouts[rank], binding.type, ReduceOp::sum, 0, {binding.slice_elements, 1}});
    EXPECT_TRUE(one.ok()) << one.status().text();
    programs.push_back(std::move(one).value());
  }
  return programs;
}

struct Numbers {  // every rank's buffers; whole numbers, so that any order of a sum is exact
  Numbers(int ranks, std::uint64_t count, const std::vector<InPlace>& in_place) : sum(count, 0) {
    std::mt19937 random(kSeed);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.emplace_back(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        inputs.back()[i] = static_cast<float>(random() % 1000) - 500;
        sum[i] += inputs.back()[i];
      }
      const bool together = in_place[static_cast<std::size_t>(rank)] == InPlace::yes;
      outputs.push_back(together ? inputs.back() : std::vector<float>(count, -1.0F));
    }
    for (std::size_t rank = 0; rank < inputs.size(); ++rank)
      buffers.push_back({in_place[rank] == InPlace::yes ? outputs[rank].data() : inputs[rank].data(), outputs[rank].data()});
  }

  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> outputs;
  std::vector<float> sum;
  std::vector<BlockBuffers> buffers;
};

void expect_sums(const Plan& plan, const std::vector<InPlace>& in_place, std::uint64_t count, std::uint64_t slices,
                 std::uint32_t capacity) {
  SCOPED_TRACE("count " + std::to_string(count) + " slices " + std::to_string(slices) + " capacity " + std::to_string(capacity));
  Numbers numbers(plan.shape.ranks, count, in_place);
  const std::uint64_t longest = layouts_of(plan.shape, count)[0].longest();
  const std::vector<BoundProgram> programs =
      bound(plan, in_place, {count, std::max<std::uint64_t>(1, (longest + slices - 1) / slices)});
  BlockRun run{.programs = programs, .buffers = numbers.buffers, .capacity = capacity};
  run.timeout_ms = 100000;  // long enough for a hundred blocks on two busy cores under a race detector
  const Status status = run_blocks(run);
  ASSERT_TRUE(status.ok()) << status.text();
  for (const auto& output : numbers.outputs) ASSERT_EQ(output, numbers.sum);
}

using Case = std::tuple<std::string_view, int>;

class Blocks : public testing::TestWithParam<Case> {};

TEST_P(Blocks, GiveTheReferenceSumPlainAndLowered) {
  const auto& [name, ranks] = GetParam();
  const auto of_all = static_cast<std::size_t>(ranks);
  std::vector<InPlace> mixed(of_all, InPlace::no);
  for (std::size_t rank = 1; rank < of_all; rank += 2) mixed[rank] = InPlace::yes;
  const auto count = static_cast<std::uint64_t>(ranks) * 10 + 3;
  for (const std::vector<InPlace>& in_place : {std::vector(of_all, InPlace::no), std::vector(of_all, InPlace::yes), mixed}) {
    const Plan plain = all_reduce(name, ranks, in_place);
    const Plan fused = lowered(plain, in_place);
    for (const std::uint32_t capacity : {1U, 2U})
      for (const std::uint64_t slices : {1U, 2U, 5U}) {
        expect_sums(plain, in_place, count, slices, capacity);
        expect_sums(fused, in_place, count, slices, capacity);
        if (HasFatalFailure()) return;
      }
    expect_sums(fused, in_place, 1, 1, 1);  // most chunks are empty
    expect_sums(fused, in_place, 0, 1, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(AllReduce, Blocks,
                         testing::Values(Case{"one_shot", 1}, Case{"ring", 2}, Case{"ring", 3}, Case{"ring", 8},
                                         Case{"two_shot", 2}, Case{"two_shot", 5}, Case{"two_shot", 8}, Case{"hierarchical", 4},
                                         Case{"hierarchical", 8}, Case{"halving_doubling", 7}, Case{"double_tree", 6}),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param)) + "_" + std::to_string(std::get<1>(each.param));
                         });

TEST(BlockInterpreter, ScalesContributionsAndDividesResults) {
  const std::vector<InPlace> in_place(3, InPlace::no);
  for (const bool fused : {false, true}) {
    const Plan plan = all_reduce("ring", 3, in_place, Finish::scale_contributions);
    const Plan run_plan = fused ? lowered(plan, in_place) : plan;
    Numbers numbers(3, 30, in_place);
    const float scalars[] = {2, 4, 0.5};
    for (std::size_t rank = 0; rank < 3; ++rank) numbers.buffers[rank].scalar = &scalars[rank];
    const std::vector<BoundProgram> programs = bound(run_plan, in_place, {30, 4});
    const Status status = run_blocks({.programs = programs, .buffers = numbers.buffers});
    ASSERT_TRUE(status.ok()) << status.text();
    for (std::size_t i = 0; i < 30; ++i) {
      const float expected = 2 * numbers.inputs[0][i] + 4 * numbers.inputs[1][i] + 0.5F * numbers.inputs[2][i];
      for (const auto& output : numbers.outputs) ASSERT_EQ(output[i], expected);
    }

    const Plan average = all_reduce("ring", 3, in_place, Finish::divide_result);
    const Plan run_average = fused ? lowered(average, in_place) : average;
    const std::vector<std::int32_t> input = {7, -7, 8, 30, -1, 2};
    std::vector<std::vector<std::int32_t>> outputs(3, std::vector<std::int32_t>(6));
    std::vector<BlockBuffers> buffers;
    for (auto& output : outputs) buffers.push_back({input.data(), output.data()});
    const std::vector<BoundProgram> averages = bound(run_average, in_place, {6, 1, DataType::int32});
    const Status averaged = run_blocks({.programs = averages, .buffers = buffers});
    ASSERT_TRUE(averaged.ok()) << averaged.text();
    for (const auto& output : outputs) EXPECT_EQ(output, input);
  }
}

TEST(BlockInterpreter, NamesTheBlockThatWaitsForever) {
  const std::vector<InPlace> in_place(2, InPlace::no);
  Plan plan = lowered(all_reduce("ring", 2, in_place), in_place);
  Program& program = plan.programs[1];  // its first step waits for its last, which is a cycle
  ASSERT_EQ(program.steps.front().dependency_count, 0U);
  program.steps.front().first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  program.steps.front().dependency_count = 1;
  program.dependencies.push_back({static_cast<std::uint32_t>(program.lanes.size() - 1), 1});
  Numbers numbers(2, 8, in_place);
  const std::vector<BoundProgram> programs = bound(plan, in_place, {8, 8});
  const Status status = run_blocks({.programs = programs, .buffers = numbers.buffers, .timeout_ms = 50});
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_TRUE(status.text().starts_with("rank ")) << status.text();
  EXPECT_NE(status.text().find("waited 50 ms for "), std::string_view::npos) << status.text();
}

TEST(BlockInterpreter, RejectsPlansThatItCannotRun) {
  const std::vector<InPlace> in_place(2, InPlace::no);
  const Plan plan = all_reduce("ring", 2, in_place);
  Numbers numbers(2, 8, in_place);
  std::vector<BoundProgram> programs = bound(plan, in_place, {8, 8});
  EXPECT_EQ(run_blocks({.programs = programs, .buffers = numbers.buffers, .capacity = 0}).code(), Code::invalid_argument);
  EXPECT_EQ(run_blocks({.programs = programs, .buffers = std::span(numbers.buffers).first(1)}).code(), Code::invalid_argument);

  const Status apart = run_blocks({.programs = std::span(programs).first(1), .buffers = std::span(numbers.buffers).first(1)});
  EXPECT_EQ(apart.text(), "rank 0 receives from rank 1 on port 0, where that rank sends nothing");
  const std::vector<BoundProgram> others = bound(plan, in_place, {8, 2});
  std::vector<BoundProgram> mixed = {programs[0], others[1]};
  const Status disagree = run_blocks({.programs = mixed, .buffers = numbers.buffers});
  EXPECT_EQ(disagree.code(), Code::invalid_argument);
  EXPECT_NE(disagree.text().find("disagree about the messages"), std::string_view::npos) << disagree.text();
  std::swap(programs[0], programs[1]);
  EXPECT_EQ(run_blocks({.programs = programs, .buffers = numbers.buffers}).code(), Code::invalid_argument);
}

// ---- virtual time ----

constexpr std::uint64_t kElements = 1 << 20;
constexpr double kNsPerByte = 0.1;
constexpr double kLatencyNs = 1000;

SimulatedMachine uniform_machine(int ranks) {
  SimulatedMachine machine;
  machine.link = uniform_links(ranks, kLatencyNs, kNsPerByte);
  return machine;
}

void expect_time(std::string_view name, int ranks, std::uint64_t slices, double expected_ns) {
  const std::vector<InPlace> in_place(static_cast<std::size_t>(ranks), InPlace::no);
  const Plan plan = lowered(all_reduce(name, ranks, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, kElements);
  const SimulatedMachine machine = uniform_machine(ranks);
  for (const StepOrder order : {StepOrder::skewed, StepOrder::readiness}) {
    SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine};
    run.slice_length = (layouts[0].longest() + slices - 1) / slices;
    run.depth = 8;
    run.order = order;
    const Result<SimulatedOutcome> outcome = simulate(run);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    EXPECT_NEAR(outcome.value().longest_ns() / expected_ns, 1, 0.02)
        << name << " " << ranks << " slices " << slices << " order " << int(order);
  }
}

TEST(Simulator, GivesTheRingsClosedForm) {
  for (const int ranks : {2, 4, 8}) {
    const double part_ns = double(kElements) * 4 / ranks * kNsPerByte;
    const int hops = 2 * (ranks - 1);
    expect_time("ring", ranks, 1, hops * (kLatencyNs + part_ns));
    // With fine slices, the one link to the next rank is idle only for one slice and one latency at the end.
    expect_time("ring", ranks, 16, hops * part_ns + kLatencyNs);
  }
}

TEST(Simulator, GivesTheDirectClosedForm) {
  for (const int ranks : {2, 4, 8}) {
    const double part_ns = double(kElements) * 4 / ranks * kNsPerByte;
    expect_time("two_shot", ranks, 1, 2 * (kLatencyNs + part_ns));  // each peer has its own link
    expect_time("two_shot", ranks, 16, 2 * part_ns + kLatencyNs);
  }
}

TEST(Simulator, PricesStepsAndMemory) {
  const std::vector<InPlace> in_place(2, InPlace::no);
  const Plan plan = lowered(all_reduce("two_shot", 2, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, kElements);
  SimulatedMachine machine;
  machine.link = uniform_links(2, 0, 0);
  machine.step_ns = 50;
  machine.copy_ns_per_byte = 0.25;
  machine.reduce_ns_per_byte = 0.5;
  const SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = kElements};
  const Result<SimulatedOutcome> outcome = simulate(run);
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  // Half the buffer each time: written to the slot, folded to two targets, read from the slot.
  const double half = double(kElements) * 4 / 2;
  EXPECT_DOUBLE_EQ(outcome.value().longest_ns(), 3 * 50 + half * (0.25 + (0.5 + 2 * 0.25) + 0.25));
}

// Half a phase of two_shot over four ranks: three messages out, three in. Receivers that read one slot need one message.
TEST(Simulator, PricesMessagesAtBothEnds) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const auto messages_ns = [&](std::string_view algorithm, bool written_once) {
    const Plan plan = lowered(all_reduce(algorithm, 4, in_place), in_place);
    const std::vector<Layout> layouts = layouts_of(plan.shape, 4);
    SimulatedMachine machine;
    machine.link = [=](Rank from, Rank to) {
      SimulatedLink link = uniform_links(4, 0, 0)(from, to);
      link.message_ns = 100;
      link.written_once = written_once;
      return link;
    };
    return simulate({.plan = plan, .layouts = layouts, .machine = machine, .slice_length = 4}).value().longest_ns();
  };
  EXPECT_DOUBLE_EQ(messages_ns("one_shot", false), 100 * (3 + 3));
  EXPECT_DOUBLE_EQ(messages_ns("one_shot", true), 100 * (1 + 3));
  EXPECT_DOUBLE_EQ(messages_ns("recursive_doubling", false), 100 * 2 * (1 + 1));
  EXPECT_DOUBLE_EQ(messages_ns("two_shot", false), 100 * (3 + 3 + 3 + 3));
}

TEST(Simulator, PricesPassesThroughMemory) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const Plan plan = lowered(all_reduce("two_shot", 4, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, kElements);
  SimulatedMachine machine;
  machine.link = uniform_links(4, 0, 0);
  machine.pass_ns_per_byte = 0.25;
  const SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = kElements, .depth = 4};
  // In quarters of the buffer: three copied into slots, the sum of four to two places, three copied out of slots.
  EXPECT_DOUBLE_EQ(simulate(run).value().longest_ns(), double(kElements) * 4 / 4 * 0.25 * (3 * 2 + (4 + 2) + 3 * 2));
}

// Each rank has one port for each direction.
SimulatedMachine machine_of_ports(int ranks) {
  SimulatedMachine machine;
  machine.link = [=](Rank from, Rank to) {
    SimulatedLink link;
    link.latency_ns = kLatencyNs;
    link.ns_per_byte = kNsPerByte;
    link.wire = static_cast<std::uint32_t>(from);
    link.far_wire = static_cast<std::uint32_t>(ranks + to);
    return link;
  };
  return machine;
}

double time_of_direct(Collective collective, const SimulatedMachine& machine) {
  const int ranks = 4;
  const Algorithm& direct = *find_algorithm("direct", collective);
  const Shape shape{collective, ranks, 0, 1, Finish::none};
  const std::vector<InPlace> in_place(ranks, InPlace::no);
  const Plan plan = lowered(build_plan(direct, shape, Tiers::flat(ranks), in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(shape, kElements);
  return simulate({.plan = plan, .layouts = layouts, .machine = machine, .slice_length = kElements}).value().longest_ns();
}

constexpr double kPartNs = double(kElements) * 4 * kNsPerByte;

TEST(Simulator, SharesThePortOfAReceiver) {
  EXPECT_NEAR(time_of_direct(Collective::gather, uniform_machine(4)), kLatencyNs + kPartNs, 1e-3) << "a wire for each sender";
  EXPECT_NEAR(time_of_direct(Collective::gather, machine_of_ports(4)), kLatencyNs + 3 * kPartNs, 1e-3) << "the root's one port";
}

TEST(Simulator, SendersOfMulticastsDoNotMeetAtOnePort) {
  EXPECT_NEAR(time_of_direct(Collective::all_gather, machine_of_ports(4)), kLatencyNs + 3 * kPartNs, 1e-3);
}

TEST(Simulator, SharesTheCoresOfANode) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const Plan plan = lowered(all_reduce("two_shot", 4, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, kElements);
  SimulatedMachine machine;
  machine.link = uniform_links(4, 0, 0);
  machine.copy_ns_per_byte = 0.25;
  const SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = kElements, .depth = 4};
  const double alone = simulate(run).value().longest_ns();
  machine.node_of = {0, 0, 0, 0};
  machine.cores_per_node = 2;
  EXPECT_NEAR(simulate(run).value().longest_ns() / alone, 2, 1e-9);
  machine.cores_per_node = 4;
  EXPECT_NEAR(simulate(run).value().longest_ns() / alone, 1, 1e-9);
}

TEST(Simulator, RunsEveryStepOfEverySliceOnceAfterItsDependencies) {
  for (const std::string_view name : {"ring", "two_shot", "hierarchical", "double_tree"})
    for (const bool fused : {false, true})
      for (const StepOrder order : {StepOrder::skewed, StepOrder::readiness}) {
        if (order == StepOrder::skewed && !fused) continue;
        SCOPED_TRACE(std::string(name) + (fused ? " lowered" : " plain") + " order " + std::to_string(int(order)));
        const std::vector<InPlace> in_place(8, InPlace::no);
        const Plan plain = all_reduce(name, 8, in_place);
        const Plan plan = fused ? lowered(plain, in_place) : plain;
        const std::vector<Layout> layouts = layouts_of(plan.shape, 1003);
        const SimulatedMachine machine = uniform_machine(8);
        SimulatedTrace trace;
        SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = 40, .depth = 8, .order = order};
        run.trace = &trace;
        const Result<SimulatedOutcome> outcome = simulate(run);
        ASSERT_TRUE(outcome.ok()) << outcome.status().text();
        std::map<std::tuple<Rank, std::uint32_t, std::uint64_t>, double> ended;
        for (const SimulatedEvent& event : trace.steps)
          ASSERT_TRUE(ended.try_emplace({event.rank, event.step, event.slice}, event.end_ns).second) << "a step ran twice";
        const std::uint64_t slices = layouts[0].slices(40);
        std::size_t expected = 0;
        for (const Program& program : plan.programs) expected += program.steps.size() * slices;
        EXPECT_EQ(trace.steps.size(), expected);
        for (const SimulatedEvent& event : trace.steps) {
          const Program& program = plan.programs[static_cast<std::size_t>(event.rank)];
          for (const Dependency& dependency : program.dependencies_of(program.steps[event.step]))
            for (std::uint32_t i = 0; i < dependency.steps; ++i)
              ASSERT_LE((ended.at({event.rank, program.lanes[dependency.lane].first_step + i, event.slice})), event.begin_ns);
        }
        SimulatedTrace again;
        run.trace = &again;
        ASSERT_TRUE(simulate(run).ok());
        EXPECT_EQ(again.steps, trace.steps) << "two runs differ";
        EXPECT_EQ(again.messages, trace.messages) << "two runs differ";
      }
}

TEST(Simulator, CountsTheBytesOfEveryChannel) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const Plan plan = lowered(all_reduce("ring", 4, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, 1003);
  const SimulatedMachine machine = uniform_machine(4);
  const Result<SimulatedOutcome> outcome =
      simulate({.plan = plan, .layouts = layouts, .machine = machine, .slice_length = 100, .depth = 8});
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  std::uint64_t bytes = 0;
  for (const SimulatedChannel& channel : outcome.value().channels) {
    EXPECT_EQ(channel.receivers, std::vector<Rank>{(channel.sender + 1) % 4});
    bytes += channel.bytes;
  }
  EXPECT_EQ(bytes, 1003U * 4 * 2 * 3);
}

TEST(Simulator, RejectsInvalidRequests) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const Plan plain = all_reduce("ring", 4, in_place);
  const std::vector<Layout> layouts = layouts_of(plain.shape, 100);
  SimulatedMachine machine = uniform_machine(4);
  const SimulatedRun run{.plan = plain, .layouts = layouts, .machine = machine};
  const Result<SimulatedOutcome> skewed = simulate(run);
  ASSERT_FALSE(skewed.ok());
  EXPECT_NE(skewed.status().text().find("a skewed order takes one"), std::string_view::npos) << skewed.status().text();
  machine.node_of = {0, 0};
  EXPECT_FALSE(simulate({.plan = plain, .layouts = layouts, .machine = machine, .order = StepOrder::readiness}).ok());
  machine.node_of.clear();
  EXPECT_FALSE(simulate({.plan = plain, .layouts = layouts, .machine = machine, .depth = 0, .order = StepOrder::readiness}).ok());
}

TEST(Simulator, NamesTheStepThatIsStuck) {
  const std::vector<InPlace> in_place(4, InPlace::no);
  const Plan plan = lowered(all_reduce("ring", 4, in_place), in_place);
  const std::vector<Layout> layouts = layouts_of(plan.shape, 1000);
  const SimulatedMachine machine = uniform_machine(4);
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = 50, .depth = 1};
  const Result<SimulatedOutcome> blocked = simulate(run);  // the skewed order needs two slots where waits are cyclic
  ASSERT_FALSE(blocked.ok());
  EXPECT_TRUE(blocked.status().text().starts_with("rank 0 is stuck at lane ")) << blocked.status().text();
  EXPECT_NE(blocked.status().text().find("it waits for rank 1 to read a message"), std::string_view::npos)
      << blocked.status().text();
  run.order = StepOrder::readiness;
  EXPECT_TRUE(simulate(run).ok());
}

}  // namespace
}  // namespace seto

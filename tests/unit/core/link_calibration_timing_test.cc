#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "src/bootstrap/providers/in_process.h"
#include "src/core/communicator/link_calibration.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

// Where others keep the cores busy, an exchange takes a millisecond, and the shipped constants stay. This suite runs alone, but
// the machine may take a core away at any time. So a test that needs a measurement tries again for so long.
constexpr std::uint64_t kPatienceMs = 40'000;

// Ranks as threads, each of which makes several communicators on one context.
class Ranks final {
 public:
  using Made = std::vector<Result<std::unique_ptr<Communicator>>>;

  explicit Ranks(int ranks) : contexts_(static_cast<std::size_t>(ranks)) {}

  Made make(const std::function<void(Rank, Config&)>& configure) {
    const auto hub = std::make_shared<InProcessHub>(static_cast<int>(contexts_.size()));
    Made made;
    for (std::size_t i = 0; i < contexts_.size(); ++i) made.emplace_back(failure(Code::internal, "not made"));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < contexts_.size(); ++i)
      threads.emplace_back([&, i] {
        CommunicatorOptions options;
        options.config.init_timeout_ms = 20'000;
        configure(static_cast<Rank>(i), options.config);
        if (contexts_[i] == nullptr) contexts_[i] = Context::create(options.config).value();
        options.context = contexts_[i];
        InProcessBootstrap bootstrap(hub, static_cast<Rank>(i));
        made[i] = Communicator::create(bootstrap, options);
      });
    for (std::thread& thread : threads) thread.join();
    return made;
  }

 private:
  std::vector<std::shared_ptr<Context>> contexts_;
};

void as_it_is(Rank, Config&) {}

void always_measure(Rank, Config& config) { config.calibrate = Calibrate::on; }

TierCost node_costs(const Ranks::Made& made) { return made.back().value()->costs().node; }

bool all_made(const Ranks::Made& made) {
  return std::all_of(made.begin(), made.end(), [](const auto& one) { return one.ok(); });
}

// Measures until no disturbance has spoilt the measurement. Fails if a try fails.
Ranks::Made measured(Ranks& ranks) {
  Ranks::Made made = ranks.make(always_measure);
  for (const Deadline until = Deadline::after_ms(kPatienceMs); all_made(made) && !until.passed();) {
    const TierCost& node = node_costs(made);
    if (node != CostModel().node && node.bytes_per_second > 1e6) break;  // a copy during which a core is away is slower
    made = ranks.make(always_measure);
  }
  return made;
}

TEST(Calibration, AllRanksUseTheMeasurementOfOnePair) {
  Ranks ranks(4);
  const Ranks::Made made = measured(ranks);
  for (const auto& one : made) {
    ASSERT_TRUE(one.ok()) << one.status().text();
    const CostModel& costs = one.value()->costs();
    EXPECT_EQ(costs.source, CostSource::measured);
    EXPECT_EQ(costs, made[0].value()->costs());
    EXPECT_NE(costs.node, CostModel().node);
    EXPECT_GT(costs.node.latency_seconds, 10e-9);
    EXPECT_LT(costs.node.latency_seconds, 1.0);
    EXPECT_GT(costs.node.bytes_per_second, 1e6);
    EXPECT_LT(costs.node.bytes_per_second, 1e12);
    EXPECT_EQ(costs.site, CostModel().site);  // there is no site link to measure
  }
}

// Without a setting the first communicator measures, however busy the machine is.
TEST(Calibration, IsDoneByDefault) {
  const Ranks::Made made = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(made));
  EXPECT_EQ(made[0].value()->costs().source, CostSource::measured);
}

TEST(Calibration, IsKeptForTheNextCommunicatorOfTheSameContexts) {
  Ranks ranks(2);
  const Ranks::Made first = measured(ranks);
  ASSERT_TRUE(all_made(first));
  ASSERT_NE(node_costs(first), CostModel().node) << "no measurement succeeded";
  // A new measurement would not give the same six digits, nor would two.
  for (int next = 0; next < 2; ++next) {
    const Ranks::Made kept = ranks.make(as_it_is);
    ASSERT_TRUE(all_made(kept));
    EXPECT_EQ(node_costs(kept), node_costs(first));
  }
  const Ranks::Made again = measured(ranks);
  ASSERT_TRUE(all_made(again));
  EXPECT_NE(node_costs(again), CostModel().node) << "no measurement succeeded";
  EXPECT_NE(node_costs(again), node_costs(first));
}

TEST(Calibration, ShippedConstantsAreUsedIfCalibrationIsOff) {
  const Ranks::Made off = Ranks(2).make([](Rank, Config& config) { config.calibrate = Calibrate::off; });
  const Ranks::Made deterministic = Ranks(2).make([](Rank, Config& config) { config.deterministic = true; });
  const Ranks::Made alone = Ranks(1).make(as_it_is);
  const Ranks::Made poor = Ranks(3).make([](Rank rank, Config& config) {
    if (rank == 1) config.shared_memory_limit = 1 << 20;
  });
  for (const Ranks::Made* made : {&off, &deterministic, &alone, &poor}) {
    ASSERT_TRUE(made->back().ok()) << made->back().status().text();
    EXPECT_EQ(made->back().value()->costs(), CostModel());
  }
}

TEST(Calibration, AFileOverridesAndMustBeTheSameOnAllRanks) {
  const std::string path = ::testing::TempDir() + "seto_calibration_" + std::to_string(std::random_device{}());
  std::ofstream(path) << "node.latency_us 7\n";
  const Ranks::Made same = Ranks(3).make([&](Rank, Config& config) { config.tuning_file = path; });
  for (const auto& one : same) {
    ASSERT_TRUE(one.ok()) << one.status().text();
    EXPECT_DOUBLE_EQ(one.value()->costs().node.latency_seconds, 7e-6);
    EXPECT_EQ(one.value()->costs().source, CostSource::file);
  }
  const Ranks::Made different = Ranks(3).make([&](Rank rank, Config& config) {
    if (rank == 2) config.tuning_file = path;
  });
  for (const auto& one : different)
    EXPECT_THAT(std::string(one.status().text()), HasSubstr("rank 0 and rank 2 want different constants"));
  const Ranks::Made missing =
      Ranks(3).make([&](Rank rank, Config& config) { config.tuning_file = rank == 1 ? path + "x" : path; });
  EXPECT_THAT(std::string(missing[1].status().text()), HasSubstr(path + "x cannot be read"));
  for (const std::size_t rank : {0, 2})
    EXPECT_THAT(std::string(missing[rank].status().text()), HasSubstr("rank 1: its SETO_TUNING_FILE"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace seto

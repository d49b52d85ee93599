#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "src/bootstrap/providers/in_process.h"
#include "src/core/communicator/link_calibration.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

// Where other tests keep the cores busy, an exchange takes a millisecond and is not used: this suite runs alone.

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

TEST(Calibration, AllRanksUseTheMeasurementOfOnePair) {
  Ranks ranks(4);
  const Ranks::Made made = ranks.make(as_it_is);
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

TEST(Calibration, IsKeptForTheNextCommunicatorOfTheSameContexts) {
  Ranks ranks(2);
  const Ranks::Made first = ranks.make(as_it_is);
  const Ranks::Made second = ranks.make(as_it_is);
  const Ranks::Made again = ranks.make([](Rank, Config& config) { config.calibrate = Calibrate::on; });
  ASSERT_TRUE(first[0].ok() && second[0].ok() && again[1].ok());
  // A new measurement would not give the same six digits twice.
  EXPECT_EQ(second[1].value()->costs().node, first[0].value()->costs().node);
  EXPECT_NE(again[1].value()->costs().node, first[0].value()->costs().node);
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

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "src/bootstrap/providers/in_process.h"
#include "src/core/choice/boundaries.h"
#include "src/core/choice/kept_constants.h"
#include "src/core/communicator/cache_probe.h"
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

bool has_measured(const Ranks::Made& made) { return !made.back().value()->costs().has_shipped(TierKind::node); }

// The part that files contain.
TierCost kept_part(TierCost node) {
  node.long_message_bytes = node.last_level_bytes = 0;
  return node;
}

// The rest follows from it, and from what the kernel says. A text of constants has six digits.
void expect_the_rest(const TierCost& node) {
  EXPECT_NEAR(node.long_message_bytes, long_message_bytes_of(node), 1e-4 * node.long_message_bytes);
  const double said = last_level_cache_bytes();
  const double expected = said > 0 ? said : CostModel().node.last_level_bytes;
  EXPECT_NEAR(node.last_level_bytes, expected, 1e-5 * expected);
}

bool all_made(const Ranks::Made& made) {
  return std::all_of(made.begin(), made.end(), [](const auto& one) { return one.ok(); });
}

// Measures until no disturbance has spoilt the measurement. Fails if a try fails.
Ranks::Made measured(Ranks& ranks) {
  Ranks::Made made = ranks.make(always_measure);
  for (const Deadline until = Deadline::after_ms(kPatienceMs); all_made(made) && !until.passed();) {
    if (has_measured(made) && node_costs(made).bytes_per_second > 1e6) break;  // a copy during which a core is away is slower
    made = ranks.make(always_measure);
  }
  return made;
}

// The files of the user who runs the test are neither read nor written.
class Calibration : public ::testing::Test {
 protected:
  Calibration() { setenv("XDG_CACHE_HOME", folder_.c_str(), 1); }
  ~Calibration() override {
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    std::filesystem::remove_all(folder_);
  }

  // The machine as ranks see it that are threads of this process.
  static MeasuredMachine machine(int ranks) {
    return MeasuredMachine::here(usable_cores(), std::max(1.0, static_cast<double>(ranks) / usable_cores()));
  }
  [[nodiscard]] KeptFiles files() const { return KeptFiles(folder_ + "/seto"); }

 private:
  const std::string folder_ = ::testing::TempDir() + "seto_kept_" + std::to_string(std::random_device{}());
};

constexpr TierCost kKept{3.25e-7, 9e9, 6.25e-8};  // no measurement has the same digits

TEST_F(Calibration, IsLeftOutAfterEnoughJobs) {
  const KeptConstants kept{kKept, KeptConstants::kEnough};
  ASSERT_TRUE(files().write(machine(3), kept).ok());
  const Ranks::Made made = Ranks(3).make(as_it_is);
  for (const auto& one : made) {
    ASSERT_TRUE(one.ok()) << one.status().text();
    EXPECT_EQ(one.value()->costs().source, CostSource::measured);
    EXPECT_EQ(one.value()->costs(), made[0].value()->costs());
    EXPECT_DOUBLE_EQ(one.value()->costs().node.latency_seconds, kKept.latency_seconds);
    EXPECT_DOUBLE_EQ(one.value()->costs().node.bytes_per_second, kKept.bytes_per_second);
    expect_the_rest(one.value()->costs().node);
  }
  EXPECT_EQ(files().read(machine(3))->jobs, KeptConstants::kEnough) << "nothing was added";
}

// As in a container whose home is read-only.
TEST_F(Calibration, IsRememberedByTheProcessWhereNoFileCanBeWritten) {
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  Ranks ranks(2);
  const Ranks::Made made = measured(ranks);  // with SETO_CALIBRATE=on
  ASSERT_TRUE(all_made(made));
  ASSERT_TRUE(has_measured(made)) << "no measurement succeeded";
  const std::optional<KeptConstants> now = remembered_constants(machine(2));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->jobs, 1);
  EXPECT_NEAR(now->node.latency_seconds, node_costs(made).latency_seconds, 1e-5 * now->node.latency_seconds) << "of six digits";
  EXPECT_FALSE(remembered_constants(machine(5))) << "no such ranks have measured";

  KeptConstants enough;
  while (!enough.suffices()) enough.take(kKept);
  remember_constants(machine(2), enough);
  const Ranks::Made next = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(next));
  EXPECT_EQ(kept_part(node_costs(next)), kKept) << "nothing is measured any more";
  EXPECT_EQ(remembered_constants(machine(2))->jobs, KeptConstants::kEnough);
}

TEST_F(Calibration, DecidesHowMessagesAreStored) {
  TierCost node = kKept;
  node.cached_bytes_per_second = 50e9;
  node.cached_bytes = 512 << 10;
  ASSERT_TRUE(files().write(machine(2), {node, KeptConstants::kEnough}).ok());
  const Ranks::Made made = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(made));
  std::vector<std::byte> source(512 << 10);
  const Transfer send{LocalTransfer::Direction::send, 1, source.data(), nullptr, source.size(), DataType::uint8, {}};
  TransferCall call;
  call.transfers = {&send, 1};
  StoreTuner& stores = *made[0].value()->transfers().prepare(call).stores;
  bool is_streamed = false;
  for (int turn = 0; turn < 8; ++turn) is_streamed |= stores.next().results == Store::past_cache;
  EXPECT_TRUE(is_streamed) << "as shipped, from 1 MiB on";
}

TEST_F(Calibration, ReplacesKeptConstantsWhereTheSettingAsksForIt) {
  ASSERT_TRUE(files().write(machine(2), {kKept, KeptConstants::kEnough}).ok());
  Ranks ranks(2);
  const Ranks::Made made = measured(ranks);  // with SETO_CALIBRATE=on
  ASSERT_TRUE(all_made(made));
  ASSERT_TRUE(has_measured(made)) << "no measurement succeeded";
  EXPECT_NE(kept_part(node_costs(made)), kKept);
  const std::optional<KeptConstants> now = files().read(machine(2));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->jobs, 1);
  EXPECT_EQ(kept_part(now->node), kept_part(node_costs(made)));
}

TEST_F(Calibration, OfFewJobsIsCombinedWithTheNextOne) {
  const TierCost slow{1e-5, 1e7, 1e-6};  // as on a machine that others use: any measurement that is believed is better
  ASSERT_TRUE(files().write(machine(2), {slow, 1}).ok());
  const Ranks::Made made = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(made));
  const std::optional<KeptConstants> now = files().read(machine(2));
  ASSERT_TRUE(now);
  EXPECT_LE(now->node.latency_seconds, slow.latency_seconds);
  EXPECT_GE(now->node.bytes_per_second, slow.bytes_per_second);
  if (!has_measured(made)) {  // the machine is too busy to measure, so nothing is added
    EXPECT_EQ(now->jobs, 1);
  } else {
    EXPECT_EQ(now->jobs, 2);
    EXPECT_EQ(kept_part(now->node), kept_part(node_costs(made))) << "all ranks use what is kept";
  }
}

TEST_F(Calibration, MeasuresWhereTheFileIsBroken) {
  ASSERT_TRUE(files().write(machine(2), {kKept, KeptConstants::kEnough}).ok());
  std::filesystem::resize_file(files().path_of(machine(2)), 40);
  const Ranks::Made made = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(made));
  EXPECT_EQ(made[0].value()->costs().source, CostSource::measured);
  EXPECT_NE(kept_part(node_costs(made)), kKept);
  EXPECT_EQ(made[0].value()->costs(), made[1].value()->costs());
}

TEST_F(Calibration, AllRanksUseTheMeasurementOfOnePair) {
  Ranks ranks(4);
  const Ranks::Made made = measured(ranks);
  for (const auto& one : made) {
    ASSERT_TRUE(one.ok()) << one.status().text();
    const CostModel& costs = one.value()->costs();
    EXPECT_EQ(costs.source, CostSource::measured);
    EXPECT_EQ(costs, made[0].value()->costs());
    EXPECT_TRUE(has_measured(made));
    expect_the_rest(costs.node);
    EXPECT_GT(costs.node.latency_seconds, 10e-9);
    EXPECT_LT(costs.node.latency_seconds, 1.0);
    EXPECT_GT(costs.node.bytes_per_second, 1e6);
    EXPECT_LT(costs.node.bytes_per_second, 1e12);
    EXPECT_EQ(costs.site, CostModel().site);  // there is no site link to measure
  }
}

// Without a setting the first communicator measures, however busy the machine is.
TEST_F(Calibration, IsDoneByDefault) {
  const Ranks::Made made = Ranks(2).make(as_it_is);
  ASSERT_TRUE(all_made(made));
  EXPECT_EQ(made[0].value()->costs().source, CostSource::measured);
}

TEST_F(Calibration, IsKeptForTheNextCommunicatorOfTheSameContexts) {
  Ranks ranks(2);
  const Ranks::Made first = measured(ranks);
  ASSERT_TRUE(all_made(first));
  ASSERT_TRUE(has_measured(first)) << "no measurement succeeded";
  // A new measurement would not give the same six digits, nor would two.
  for (int next = 0; next < 2; ++next) {
    const Ranks::Made kept = ranks.make(as_it_is);
    ASSERT_TRUE(all_made(kept));
    EXPECT_EQ(node_costs(kept), node_costs(first));
  }
  const Ranks::Made again = measured(ranks);
  ASSERT_TRUE(all_made(again));
  EXPECT_TRUE(has_measured(again)) << "no measurement succeeded";
  EXPECT_NE(node_costs(again), node_costs(first));
}

TEST_F(Calibration, ShippedConstantsAreUsedIfCalibrationIsOff) {
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

TEST_F(Calibration, AFileOverridesAndMustBeTheSameOnAllRanks) {
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

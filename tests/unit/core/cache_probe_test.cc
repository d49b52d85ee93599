#include "src/core/communicator/cache_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace seto {
namespace {

// A core with a clock of its own.
struct ModelCore {
  double cached_rate = 250e9;
  double other_rate = 100e9;
  double cache_bytes = 1 << 20;
  int disturbed = 0;  // every so many passes take a scheduler's turn; 0: none
  double now = 1000;
  int passes = 0;
  int disturbances = 0;

  CacheCost measured() {
    return probe_cache(
        [this](std::uint64_t bytes) {
          const auto length = static_cast<double>(bytes);
          now += length / (length <= cache_bytes ? cached_rate : other_rate);
          ++passes;
          if (disturbed == 0 || passes % disturbed != 0) return;
          now += 0.5e-3;
          ++disturbances;
        },
        [this] { return now; });
  }
};

TEST(CacheProbe, FindsTheRateAndTheSizeOfACache) {
  for (const double cache : {0.25, 1.0, 2.0}) {
    ModelCore core;
    core.cache_bytes = cache * (1 << 20);
    const CacheCost cost = core.measured();
    EXPECT_NEAR(cost.bytes_per_second, 250e9, 1e6);
    EXPECT_DOUBLE_EQ(cost.bytes, core.cache_bytes);
  }
}

TEST(CacheProbe, IsNotMisledBySingleDisturbances) {
  ModelCore core;
  core.disturbed = 30;
  const CacheCost cost = core.measured();
  EXPECT_GT(core.disturbances, 1);
  EXPECT_NEAR(cost.bytes_per_second, 250e9, 1e6);
  EXPECT_LE(cost.bytes, core.cache_bytes) << "what is not measured is not believed to be cached";
}

TEST(CacheProbe, TakesItsBudgetAndOneBatchAtMost) {
  for (const double rate : {1e6, 1e9, 1e12}) {
    ModelCore core;
    core.cached_rate = core.other_rate = rate;
    const double start = core.now;
    const CacheCost cost = core.measured();
    // A pass that brings the operands, and one that is measured. Passes that are slow are those of a batch alone.
    const double last = rate < 1e8 ? 128 << 10 : static_cast<double>(kMostCacheProbeBytes);
    EXPECT_LE(core.now - start, kCacheProbeSeconds + 2 * last / rate) << rate;
    EXPECT_GT(cost.bytes_per_second, 0) << rate;
  }
}

TEST(CacheProbe, ASizeForWhichTheTimeDidNotSufficeIsAssumed) {
  ModelCore core;
  core.cached_rate = core.other_rate = 1e6;
  EXPECT_EQ(core.measured().bytes, 1 << 20);
  EXPECT_EQ(core.passes, 2);
}

TEST(CacheProbe, AClockThatStandsStillSaysNothing) {
  const CacheCost cost = probe_cache([](std::uint64_t) {}, [] { return 1.0; });
  EXPECT_EQ(cost.bytes_per_second, 0);
  EXPECT_EQ(cost.bytes, 0);
}

TEST(CacheProbe, MeasuresThisMachine) {
  SumPass pass;
  const CacheCost cost =
      probe_cache([&](std::uint64_t bytes) { pass(bytes); },
                  [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); });
  EXPECT_GT(cost.bytes_per_second, 0);
  EXPECT_GE(cost.bytes, 128 << 10);
  EXPECT_LE(cost.bytes, static_cast<double>(kMostCacheProbeBytes));
}

// As Linux describes caches, in any order.
TEST(CacheProbe, TheLargestCacheIsThatOfTheKernel) {
  const std::string folder = ::testing::TempDir() + "seto_caches_" + std::to_string(std::random_device{}());
  const char* const sizes[] = {"32K", "1024K", "32768K", "48K"};
  for (std::size_t index = 0; index < std::size(sizes); ++index) {
    const std::string cache = folder + "/index" + std::to_string(index);
    std::filesystem::create_directories(cache);
    std::ofstream(cache + "/size") << sizes[index] << "\n";
  }
  EXPECT_EQ(last_level_cache_bytes(folder), 32 << 20);
  std::ofstream(folder + "/index2/size") << "unknown\n";
  EXPECT_EQ(last_level_cache_bytes(folder), 1 << 20);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(last_level_cache_bytes(folder), 0) << "a kernel that does not say it";
}

}  // namespace
}  // namespace seto

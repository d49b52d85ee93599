// all_reduce by NVLink multicast (decision 49), between threads and between processes: results, calls that it does not take, GPUs
// and drivers that lack it or refuse, ranks that fail.
#include <gmock/gmock.h>

#include <cstring>
#include <utility>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRuns = "runs by NVLink multicast";
constexpr const char* kNotUsed = "SETO_NVLS: no call uses NVLink multicast: ";
constexpr std::size_t kLong = 16'501;  // of 4 bytes: beyond the shortest call, and no multiple of a unit

// SETO_NVLS is on, and the log is kept.
class WithNvls {
 public:
  WithNvls() {
    setenv("SETO_NVLS", "on", 1);
    setenv("SETO_LOG", "debug", 1);
    ::testing::internal::CaptureStderr();
  }
  ~WithNvls() {
    (void)log();
    unsetenv("SETO_NVLS");
    unsetenv("SETO_LOG");
  }
  WithNvls(const WithNvls&) = delete;
  WithNvls& operator=(const WithNvls&) = delete;
  // All that was logged until now; nothing is kept any more.
  std::string log() {
    if (!std::exchange(is_read_, true)) log_ = ::testing::internal::GetCapturedStderr();
    return log_;
  }

 private:
  bool is_read_ = false;
  std::string log_;
};

int times(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Integers are large, and wrap. Floats are small whole numbers, whose sums are exact in each type.
std::uint64_t whole(int rank, std::size_t index) {
  return (static_cast<std::uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15U * (index + 1);
}
unsigned small(int rank, std::size_t index) {
  return static_cast<unsigned>((index * 7 + static_cast<std::size_t>(rank) * 3) % 13);
}

std::uint16_t half_of(unsigned number, bool bfloat) {
  const auto value = static_cast<float>(number);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (bfloat || bits == 0) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>(((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3FFU));
}

template <class T>
using Element = std::function<T(int rank, std::size_t index)>;

class DeviceMulticast : public DeviceFaults {
 protected:
  // Every rank has a GPU of its own, and all of them have multicast. Those of the stand-in must: with it no test is skipped.
  [[nodiscard]] bool have_multicast(int ranks) const {
    bool have = true;
    for (int rank = 0; rank < ranks; ++rank) {
      int has = 0;
      EXPECT_TRUE(ok(driver().device_get_attribute(&has, cuda::DeviceAttribute::multicast, gpu_of(rank))));
      have = have && gpu_of(rank) == rank && has != 0;
    }
    EXPECT_TRUE(have || software_gpu::driver::on_system_driver()) << "GPUs of the stand-in lack multicast";
    return have;
  }

  // A sum with the buffers apart, at places that fit no unit. `total`: of all ranks.
  template <class T>
  static void expect_sums(DeviceRank& mine, setoDataType_t type, std::size_t count, const Element<T>& element,
                          const std::function<T(std::size_t)>& total) {
    SCOPED_TRACE("type " + std::to_string(type) + ", rank " + std::to_string(mine.rank));
    std::vector<T> input(count + 2), expected(count + 2);
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = element(mine.rank, i);
      expected[i] = i == 0 || i > count ? T(77) : total(i);
    }
    T* const from = mine.upload(input);
    T* const to = mine.upload(std::vector<T>(count + 2, T(77)));
    ASSERT_TRUE(succeeded(setoAllReduce(from + 1, to + 1, count, type, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(to, count + 2), expected);
    EXPECT_EQ(mine.read(from, count + 2), input);
  }
  template <class T>
  static void expect_whole_sums(DeviceRank& mine, setoDataType_t type, std::size_t count, int ranks) {
    expect_sums<T>(
        mine, type, count, [](int rank, std::size_t i) { return static_cast<T>(whole(rank, i)); },
        [=](std::size_t i) {
          std::uint64_t sum = 0;
          for (int rank = 0; rank < ranks; ++rank) sum += whole(rank, i);
          return static_cast<T>(sum);
        });
  }
  template <class T>
  static void expect_small_sums(DeviceRank& mine, setoDataType_t type, std::size_t count, int ranks,
                                const std::function<T(unsigned)>& number) {
    expect_sums<T>(
        mine, type, count, [=](int rank, std::size_t i) { return number(small(rank, i)); },
        [=](std::size_t i) {
          unsigned sum = 0;
          for (int rank = 0; rank < ranks; ++rank) sum += small(rank, i);
          return number(sum);
        });
  }
  static void expect_sum_of_ones(DeviceRank& mine, std::int32_t ranks) {
    auto* const values = mine.upload(std::vector<std::int32_t>(kLong, 1));
    ASSERT_TRUE(succeeded(setoAllReduce(values, values, kLong, setoInt32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(values, kLong), std::vector<std::int32_t>(kLong, ranks));
  }
};

TEST_F(DeviceMulticast, SumsOfAllTypesThatTheSwitchAdds) {
  constexpr int kRanks = 3;
  WithNvls nvls;
  start_gpus(kRanks);
  if (!have_multicast(kRanks)) GTEST_SKIP() << "skipped: needs GPUs with NVLink multicast, one for each rank";
  on_ranks(kRanks, [&](DeviceRank& mine) {
    expect_whole_sums<std::int32_t>(mine, setoInt32, kLong, kRanks);
    expect_whole_sums<std::uint32_t>(mine, setoUint32, kLong, kRanks);
    expect_whole_sums<std::int64_t>(mine, setoInt64, kLong / 2, kRanks);
    expect_whole_sums<std::uint64_t>(mine, setoUint64, kLong / 2, kRanks);
    expect_small_sums<float>(mine, setoFloat32, kLong, kRanks, [](unsigned n) { return static_cast<float>(n); });
    expect_small_sums<double>(mine, setoFloat64, kLong / 2, kRanks, [](unsigned n) { return static_cast<double>(n); });
    expect_small_sums<std::uint16_t>(mine, setoFloat16, 2 * kLong, kRanks, [](unsigned n) { return half_of(n, false); });
    expect_small_sums<std::uint16_t>(mine, setoBfloat16, 2 * kLong, kRanks, [](unsigned n) { return half_of(n, true); });
  });
  const std::string log = nvls.log();
  EXPECT_EQ(times(log, kRuns), 8 * kRanks) << log;
}

// One block has one piece of memory, which it uses in each round.
TEST_F(DeviceMulticast, LongCallsTakeRounds) {
  WithNvls nvls;
  start_gpus(2, {{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
  if (!have_multicast(2)) GTEST_SKIP() << "skipped: needs GPUs with NVLink multicast, one for each rank";
  on_ranks(2, [&](DeviceRank& mine) { expect_whole_sums<std::int32_t>(mine, setoInt32, 700'001, 2); });
  const std::string blocks = software_gpu::driver::on_system_driver() ? "" : ": 4 blocks of 512 threads, pieces of 260096 bytes";
  EXPECT_THAT(nvls.log(), HasSubstr(kRuns + blocks));
}

// Calls between those of multicast, in a group with them, and in a graph with them.
TEST_F(DeviceMulticast, OtherCallsTakeTurnsWithIt) {
  WithNvls nvls;
  start_gpus(2);
  if (!have_multicast(2)) GTEST_SKIP() << "skipped: needs GPUs with NVLink multicast, one for each rank";
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const values = mine.upload(std::vector<std::int32_t>(kLong, 1));
    const auto sum = [&](std::size_t count, setoRedOp_t op = setoSum) {
      EXPECT_TRUE(succeeded(setoAllReduce(values, values, count, setoInt32, op, mine.comm, mine.stream())));
    };
    sum(10);
    sum(kLong);
    sum(kLong, setoMax);
    EXPECT_TRUE(succeeded(setoGroupStart()));
    sum(kLong);
    sum(20);
    sum(kLong);
    EXPECT_TRUE(succeeded(setoGroupEnd()));
    std::vector<std::int32_t> expected(kLong, 8);
    std::fill_n(expected.begin(), 20, 16);
    std::fill_n(expected.begin(), 10, 32);
    EXPECT_EQ(mine.read(values, kLong), expected);
    mine.write(values, std::vector<std::int32_t>(kLong, mine.rank));
    const RepeatedCalls calls(mine, [&] {
      sum(kLong);
      sum(kLong);
    });
    for (int i = 0; i < 3; ++i) calls.launch();
    EXPECT_EQ(mine.read(values, kLong), std::vector<std::int32_t>(kLong, 32));
  });
  EXPECT_THAT(nvls.log(), HasSubstr(kRuns));
}

TEST_F(DeviceMulticast, CallsThatItDoesNotTake) {
  SETO_NEEDS_GPUS(2);
  WithNvls nvls;
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const values = mine.upload(std::vector<float>(4 * kLong, 1));
    setoCallConfig_t deterministic = SETO_CALL_CONFIG_INITIALIZER, pinned = SETO_CALL_CONFIG_INITIALIZER;
    deterministic.deterministic = setoOn;
    EXPECT_TRUE(succeeded(setoAlgorithmId("ring", &pinned.algorithm)));
    for (const setoCallConfig_t& call : {deterministic, pinned})
      EXPECT_TRUE(succeeded(setoAllReduceConfig(values, values, kLong, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
    const auto reduce = [&](std::size_t count, setoDataType_t type, setoRedOp_t op) {
      EXPECT_TRUE(succeeded(setoAllReduce(values, values, count, type, op, mine.comm, mine.stream())));
    };
    reduce(1000, setoFloat32, setoSum);
    reduce(kLong, setoFloat32, setoAvg);
    reduce(kLong, setoInt32, setoMax);
    reduce(4 * kLong, setoInt8, setoSum);
    mine.synchronize();
  });
  EXPECT_THAT(nvls.log(), Not(HasSubstr(kRuns)));
}

TEST_F(DeviceMulticast, ItIsOffByDefault) {
  SETO_NEEDS_GPUS(2);
  WithNvls nvls;
  unsetenv("SETO_NVLS");
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) { expect_sum_of_ones(mine, 2); });
  const std::string log = nvls.log();
  EXPECT_EQ(log.find("multicast"), std::string::npos) << log;
}

TEST_F(DeviceMulticast, RanksThatShareAGpuDoWithoutIt) {
  WithNvls nvls;
  start_gpus(1);
  on_ranks(2, [&](DeviceRank& mine) { expect_sum_of_ones(mine, 2); });
  const std::string log = nvls.log();
  EXPECT_THAT(log, HasSubstr(std::string(kNotUsed) + "rank 0 and rank 1 share a GPU"));
  EXPECT_THAT(log, Not(HasSubstr(kRuns)));
}

// ---- what GPUs and drivers lack or refuse: all ranks find alike that they do without it, and one says why

// The library opens the driver once, so in a process in which another test was first, an old driver still has the functions, and
// its GPUs lack multicast.
struct Lack {
  const char* name;
  const char* setting;
  const char* value;
  const char* reason;
};

class DeviceMulticastLacks : public DeviceMulticast, public ::testing::WithParamInterface<Lack> {};

TEST_P(DeviceMulticastLacks, CallsRunWithoutIt) {
  SETO_NEEDS_STAND_IN();
  WithNvls nvls;
  start_gpus(2, {{GetParam().setting, GetParam().value}});
  on_ranks(2, [&](DeviceRank& mine) { expect_sum_of_ones(mine, 2); });
  const std::string log = nvls.log();
  EXPECT_THAT(log, HasSubstr(GetParam().reason));
  EXPECT_EQ(times(log, kNotUsed), 2) << log;
  EXPECT_THAT(log, Not(HasSubstr(kRuns)));
}

constexpr const char* kErrors = "SOFTWARE_GPU_ERRORS";

INSTANTIATE_TEST_SUITE_P(
    All, DeviceMulticastLacks,
    ::testing::Values(Lack{"OldGpus", "SOFTWARE_GPU_CAPABILITY", "80", "GPU 0 of rank 0 has none"},
                      Lack{"OldDriver", "SOFTWARE_GPU_MULTICAST", "absent", "of rank 0 has no"},
                      Lack{"Granularity", kErrors, "cuMulticastGetGranularity:801", "cuMulticastGetGranularity"},
                      Lack{"Create", kErrors, "cuMulticastCreate:800", "cuMulticastCreate"},
                      Lack{"Export", kErrors, "cuMemExportToShareableHandle:304", "cuMemExportToShareableHandle"},
                      Lack{"Import", kErrors, "cuMemImportFromShareableHandle:304", "cuMemImportFromShareableHandle"},
                      Lack{"AddDevice", kErrors, "cuMulticastAddDevice:101:2", "cuMulticastAddDevice"},
                      Lack{"Memory", kErrors, "cuMemCreate:2:2", "cuMemCreate"},
                      Lack{"Bind", kErrors, "cuMulticastBindMem:2:2", "cuMulticastBindMem"},
                      Lack{"Map", kErrors, "cuMemMap:2:3", "cuMemMap"},
                      Lack{"Reserve", kErrors, "cuMemAddressReserve:2:2", "cuMemAddressReserve"},
                      Lack{"Access", kErrors, "cuMemSetAccess:800:4", "cuMemSetAccess"}),
    [](const auto& one) { return std::string(one.param.name); });

// ---- ranks that fail

TEST_F(DeviceMulticast, ARankThatNeverComesIsNamed) {
  WithNvls nvls;
  start_gpus(2);
  if (!have_multicast(2)) GTEST_SKIP() << "skipped: needs GPUs with NVLink multicast, one for each rank";
  on_ranks(2, [&](DeviceRank& mine) {
    expect_sum_of_ones(mine, 2);
    auto* const memory = mine.upload(std::vector<float>(kLong, 1));
    if (mine.rank == 0) {
      setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
      call.deadlineMs = 300;
      ASSERT_TRUE(succeeded(setoAllReduceConfig(memory, memory, kLong, setoFloat32, setoSum, mine.comm, mine.stream(), &call)));
      mine.synchronize();
      expect_failed(mine, "rank 1 never came; rank 0 waits for rank 1 in round 0 of NVLink multicast all_reduce");
      expect_usable(mine, memory);
    } else {
      expect_failed(mine, "rank 1 never came");
    }
    abort(mine);
  });
}

TEST_F(DeviceMulticast, AnAbortEndsTheKernel) {
  WithNvls nvls;
  start_gpus(2);
  if (!have_multicast(2)) GTEST_SKIP() << "skipped: needs GPUs with NVLink multicast, one for each rank";
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kLong, 1));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum(mine, memory, kLong)));
    }
    abort_rank_0(mine, memory);
  });
  EXPECT_THAT(nvls.log(), HasSubstr(kRuns));
}

// ---- processes

class DeviceMulticastProcesses : public DeviceProcesses {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    DeviceProcesses::SetUp();
  }
};

TEST_F(DeviceMulticastProcesses, SumsBetweenProcesses) {
  constexpr int kRanks = 3;
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < kRanks; ++rank)
    children.emplace_back([&, rank] {
      WithNvls nvls;
      const bool passed = run_rank(rank, kRanks, kRanks, [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kLong, static_cast<float>(mine.rank + 1)));
        for (int round = 0; round < 2; ++round) ASSERT_TRUE(succeeded(sum(mine, memory, kLong)));
        EXPECT_EQ(mine.read(memory, kLong), std::vector<float>(kLong, 18));
      });
      EXPECT_THAT(nvls.log(), HasSubstr(kRuns));
      return passed && !HasFailure();
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

// The memory that the killed rank has bound is there until the survivor has ended.
TEST_F(DeviceMulticastProcesses, AKilledRankIsNamed) {
  ChildProcess victim([&] {
    const WithNvls nvls;
    return run_rank(1, 2, 2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kLong, 1));
      ASSERT_TRUE(succeeded(sum(mine, memory, kLong)));
      mine.synchronize();
      shared_->waiting.fetch_add(1);
      for (;;) pause();
    });
  });
  ChildProcess survivor([&] {
    WithNvls nvls;
    const bool passed = run_rank(0, 2, 2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kLong, 1));
      ASSERT_TRUE(succeeded(sum(mine, memory, kLong)));
      ASSERT_TRUE(succeeded(sum(mine, memory, kLong)));
      shared_->waiting.fetch_add(1);
      mine.synchronize();
      expect_failed(mine, "rank 1");
      expect_usable(mine, memory);
      abort(mine);
    });
    EXPECT_THAT(nvls.log(), HasSubstr(kRuns));
    return passed && !HasFailure();
  });
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing

// Short calls on GPU memory, whose messages carry their marks (decision 50).
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/device_memory/device_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMarked = ", with marked messages";

class DeviceMarks : public DeviceMemory {
 protected:
  void SetUp() override {
    DeviceMemory::SetUp();
    setenv("SETO_LOG", "debug", 1);
    ::testing::internal::CaptureStderr();
  }
  void TearDown() override {
    unsetenv("SETO_LOG");
    unsetenv("SETO_SLICE_BYTES");
    if (!is_read_) (void)logged();
    DeviceMemory::TearDown();
  }
  std::string logged() {
    is_read_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

  // Sums of every rank's number, in a chain in which each call reads what the one before has written.
  void sums_in_turn(DeviceRank& mine, int ranks, std::size_t count, int calls) {
    std::int64_t expected = ranks * (ranks + 1) / 2;
    auto* const memory = mine.upload(std::vector<std::int64_t>(count, mine.rank + 1));
    for (int call = 0; call < calls; ++call) {
      ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, count, setoInt64, setoSum, mine.comm, mine.stream())));
      if (call > 0) expected *= ranks;
    }
    EXPECT_EQ(mine.read(memory, count), std::vector<std::int64_t>(count, expected));
  }

 private:
  bool is_read_ = false;
};

TEST_F(DeviceMarks, ShortCallsTakeTurnsWithLongOnes) {
  start_gpus(3);
  on_ranks(3, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 300, 9000, 2, 77}) sums_in_turn(mine, 3, count, 3);
  });
  const std::string log = logged();
  EXPECT_THAT(log, HasSubstr("all_reduce of 300 int64, sum runs on the GPU as one_shot: 1 blocks of 512 threads, slices of 300 "
                             "elements, with marked messages"));
  EXPECT_THAT(log, HasSubstr("all_reduce of 9000 int64"));
}

TEST_F(DeviceMarks, CallsOfAGroupAreOneLaunch) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<std::int32_t>(40, mine.rank + 1));
    auto* const gathered = mine.upload(std::vector<std::int32_t>(80, -1));
    ASSERT_TRUE(succeeded(setoGroupStart()));
    for (int call = 0; call < 5; ++call)
      ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, 40, setoInt32, setoSum, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(setoAllGather(memory, gathered, 40, setoInt32, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    EXPECT_EQ(mine.read(gathered, 80), std::vector<std::int32_t>(80, 3 * 16));
  });
  EXPECT_THAT(logged(), HasSubstr(kMarked));
}

TEST_F(DeviceMarks, AStatedSliceKeepsFlags) {
  setenv("SETO_SLICE_BYTES", "4096", 1);
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) { sums_in_turn(mine, 2, 10, 3); });
  EXPECT_THAT(logged(), Not(HasSubstr(kMarked)));
}

}  // namespace
}  // namespace seto::testing

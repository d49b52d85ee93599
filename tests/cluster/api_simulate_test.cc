// setoGroupSimulateEnd estimates a group and does not run it.

#include <string>
#include <vector>

#include "tests/cluster/thread_ranks.h"
#include "tests/support/communicators.h"

namespace seto::testing {
namespace {

// Only one rank calls, so any operation that were issued would hang until its deadline.
class OneSided {
 public:
  OneSided() : ranks_(2), in_(1 << 20, 1.0F), out_(1 << 20, -1.0F) {}
  ~OneSided() {
    for (const float value : out_)
      if (value != -1.0F) ADD_FAILURE() << "something was issued";
  }
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  setoComm_t comm(int rank = 0) { return ranks_[rank]; }
  ThreadRanks& ranks() { return ranks_; }
  setoResult_t all_reduce(std::size_t count, int rank = 0) {
    return setoAllReduce(in_.data(), out_.data(), count, setoFloat32, setoSum, comm(rank), nullptr);
  }
  setoResult_t send(std::size_t count) { return setoSend(in_.data(), count, setoFloat32, 1, comm(), nullptr); }
  float* out() { return out_.data(); }

  // The estimate for a group of `operations` operations.
  float of(int operations, std::size_t count) {
    setoSimInfo_t info = SETO_SIM_INFO_INITIALIZER;
    EXPECT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < operations; ++i) EXPECT_TRUE(succeeded(all_reduce(count)));
    EXPECT_TRUE(succeeded(setoGroupSimulateEnd(&info)));
    return info.estimatedTime;
  }

 private:
  ThreadRanks ranks_;
  std::vector<float> in_;
  std::vector<float> out_;
};

SETO_TEST_ALONE(ApiSimulate, grows_with_size_and_number_and_issues_nothing) {
  OneSided side;
  const float small = side.of(1, 2);
  const float large = side.of(1, 1 << 20);
  EXPECT_GT(small, 0.0F);
  EXPECT_LT(small, 1e6F) << "microseconds of 8 bytes";
  EXPECT_GT(large, small);  // latencies are measured, and large on a busy machine
  EXPECT_LT(large, 1e7F) << "microseconds of 4 MiB";
  EXPECT_NEAR(side.of(3, 1 << 20), 3 * large, 0.01 * large);
  EXPECT_EQ(side.of(0, 0), 0.0F);
  EXPECT_EQ(state_of(side.comm()).issued, 0U) << "an operation number was consumed";
  side.ranks().each([](setoComm_t comm, int) {  // both ranks still agree on the next operation number
    float value = 1;
    EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(value, 2.0F);
  });
}

SETO_TEST_ALONE(ApiSimulate, several_communicators_go_side_by_side) {
  OneSided side;
  const float one = side.of(1, 1 << 20);
  setoSimInfo_t info = SETO_SIM_INFO_INITIALIZER;
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(side.all_reduce(1 << 20, 0)));
  EXPECT_TRUE(succeeded(side.all_reduce(1 << 20, 1)));
  ASSERT_TRUE(succeeded(setoGroupSimulateEnd(&info)));
  EXPECT_NEAR(info.estimatedTime, one, 0.01 * one);
}

SETO_TEST_ALONE(ApiSimulate, knows_sends_and_receives) {
  OneSided side;
  float times[2] = {};
  for (int i = 0; i < 2; ++i) {
    setoSimInfo_t info = SETO_SIM_INFO_INITIALIZER;
    ASSERT_TRUE(succeeded(setoGroupStart()));
    EXPECT_TRUE(succeeded(side.send(1 << 10)));
    EXPECT_TRUE(succeeded(side.send(i == 0 ? 1 : 1 << 20)));
    EXPECT_TRUE(succeeded(setoRecv(side.out(), 1, setoFloat32, 1, side.comm(), nullptr)));
    ASSERT_TRUE(succeeded(setoGroupSimulateEnd(&info)));
    times[i] = info.estimatedTime;
  }
  EXPECT_GT(times[0], 0.0F);
  EXPECT_GT(times[1], times[0]);  // latencies are measured, and large on a busy machine
}

SETO_TEST_ALONE(ApiSimulate, ends_the_group_whatever_is_wrong) {
  OneSided side;
  setoSimInfo_t info = SETO_SIM_INFO_INITIALIZER;
  EXPECT_TRUE(failed(setoGroupSimulateEnd(&info), setoInvalidUsage, "started no group"));
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(failed(setoGroupSimulateEnd(nullptr), setoInvalidArgument, "simInfo"));
  EXPECT_TRUE(failed(setoGroupEnd(), setoInvalidUsage, "started no group"));
  ASSERT_TRUE(succeeded(setoGroupStart()));
  setoSimInfo_t garbage = {};
  EXPECT_TRUE(failed(setoGroupSimulateEnd(&garbage), setoInvalidArgument, "magic"));
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(setoAllReduce(nullptr, side.out(), 5, setoFloat32, setoSum, side.comm(), nullptr)));
  info.estimatedTime = 7;
  EXPECT_TRUE(failed(setoGroupSimulateEnd(&info), setoInvalidArgument, "sendbuff"));
  EXPECT_EQ(info.estimatedTime, -1.0F);
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(setoCommFinalize(side.comm())));
  EXPECT_TRUE(failed(setoGroupSimulateEnd(&info), setoInvalidUsage, "no estimate"));
  EXPECT_TRUE(failed(setoGroupEnd(), setoInvalidUsage, "started no group"));
  EXPECT_GT(side.of(1, 8), 0.0F) << "it was finalized";
}

// Ending an inner group leaves its calls in the outer one, however the inner group ends.
SETO_TEST_ALONE(ApiSimulate, nests) {
  OneSided side;
  setoSimInfo_t info = SETO_SIM_INFO_INITIALIZER;
  ASSERT_TRUE(succeeded(setoGroupStart()));
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(side.all_reduce(1 << 20)));
  ASSERT_TRUE(succeeded(setoGroupSimulateEnd(&info)));
  EXPECT_LT(info.estimatedTime, 0.0F);
  ASSERT_TRUE(succeeded(setoGroupSimulateEnd(&info)));
  EXPECT_GT(info.estimatedTime, 0.0F);
}

}  // namespace
}  // namespace seto::testing

// More ranks than one step of the engine can reduce.

#include <cstdlib>
#include <vector>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 65;
constexpr int kSum = kRanks * (kRanks + 1) / 2;  // of rank + 1
using Ints = std::vector<int>;

SETO_TEST_ALONE(ManyRanks, reduce_by_every_collective) {
  setenv("SETO_CALIBRATE", "off", 1);
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{300}}) {
      const Ints in(count * kRanks, rank + 1);
      Ints out(count, 0);
      EXPECT_TRUE(succeeded(setoAllReduce(in.data(), out.data(), count, setoInt32, setoSum, comm, nullptr)));
      EXPECT_EQ(out, Ints(count, kSum));
      EXPECT_TRUE(succeeded(setoAllReduce(in.data(), out.data(), count, setoInt32, setoAvg, comm, nullptr)));
      EXPECT_EQ(out, Ints(count, kSum / kRanks));
      out.assign(count, 0);
      EXPECT_TRUE(succeeded(setoReduce(in.data(), out.data(), count, setoInt32, setoSum, kRanks - 1, comm, nullptr)));
      EXPECT_EQ(out, Ints(count, rank == kRanks - 1 ? kSum : 0));
      EXPECT_TRUE(succeeded(setoReduceScatter(in.data(), out.data(), count, setoInt32, setoSum, comm, nullptr)));
      EXPECT_EQ(out, Ints(count, kSum));
      EXPECT_TRUE(succeeded(setoBarrier(comm, nullptr)));
    }
  });
}

}  // namespace
}  // namespace seto::testing

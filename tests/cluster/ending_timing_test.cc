// How soon a pending call ends after an abort. Alone, because busy cores delay the thread that makes the call.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "src/api/support/handles.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/child_process.h"
#include "tests/support/tries.h"

namespace seto::testing {
namespace {

constexpr double kSoonNs = 1e8;
constexpr int kTries = 5;

double ns_until_an_aborted_call_returns() {
  ThreadRanks ranks(2);
  std::atomic<std::uint64_t> returned{0};
  std::thread caller([&] {
    std::vector<float> values(1 << 16);
    EXPECT_NE(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, ranks[0], nullptr), setoSuccess);
    returned.store(monotonic_ns());
  });
  while (ranks[0]->active_calls.load() == 0) std::this_thread::yield();  // from then on the caller's memory stays valid
  const std::uint64_t aborted = monotonic_ns();
  EXPECT_TRUE(succeeded(setoCommAbort(ranks[0])));
  caller.join();
  ranks[0] = nullptr;
  return static_cast<double>(returned.load()) - static_cast<double>(aborted);
}

SETO_TEST_ALONE(EndingTime, of_an_aborted_call_is_short) {
  EXPECT_LT(least_of(kTries, kSoonNs, ns_until_an_aborted_call_returns), kSoonNs);
}

}  // namespace
}  // namespace seto::testing

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/api/support/handles.h"
#include "src/base/clock.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/child_process.h"
#include "tests/support/communicators.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

SETO_TEST_ALONE(ApiEnding, abort_ends_a_pending_call_at_once) {
  ThreadRanks ranks(2);
  std::atomic<std::uint64_t> returned{0};
  setoResult_t result = setoSuccess;
  std::string text;
  std::thread caller([&] {
    std::vector<float> values(1 << 16);
    result = setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, ranks[0], nullptr);
    returned.store(monotonic_ns());
    text = setoGetLastError(nullptr);
  });
  while (ranks[0]->active_calls.load() == 0)
    std::this_thread::yield();  // the call must be under way before the other thread aborts it
  const std::uint64_t aborted = monotonic_ns();
  EXPECT_TRUE(succeeded(setoCommAbort(ranks[0])));
  caller.join();
  ranks[0] = nullptr;
  EXPECT_NE(result, setoSuccess);
  EXPECT_TRUE(text.find("setoCommAbort") != std::string::npos || text.find("ended by another thread") != std::string::npos)
      << text;
  // How long exactly is measured in ending_timing_test.cc. Without the abort the call would end at its deadline, in half an hour.
  EXPECT_LT(static_cast<double>(returned.load()) - static_cast<double>(aborted), 20e9);
  float value = 1;
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[1], nullptr), setoRemoteError, "rank 0"));
  setoResult_t asynchronous = setoSuccess;
  EXPECT_TRUE(succeeded(setoCommGetAsyncError(ranks[1], &asynchronous)));
  EXPECT_EQ(asynchronous, setoRemoteError);
  EXPECT_NE(std::string(setoGetLastError(ranks[1])).find("rank 0"), std::string::npos);
}

// Between the check of the handle and the call itself, another thread may end the communicator.
TEST(ApiEnding, a_call_that_meets_an_abort_says_so) {
  setoComm comm(0, 1, {});
  const api::CallGuard guard(comm);
  api::live_communicators.remove(&comm);
  const Result<Communicator*> communicator = api::usable(&comm);
  EXPECT_EQ(communicator.status().text(), "comm: it was ended by another thread; only queries and setoCommDestroy are allowed");
}

SETO_TEST_ALONE(ApiEnding, one_thread_destroys_its_ranks_one_after_another) {
  std::vector<setoComm_t> comms(4);
  ASSERT_TRUE(succeeded(setoCommInitAll(comms.data(), 4, nullptr)));
  std::vector<std::thread> threads;
  for (const setoComm_t comm : comms)
    threads.emplace_back([comm] {
      std::vector<float> values(100'000, 1);
      EXPECT_TRUE(succeeded(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr)));
      EXPECT_EQ(values[99'999], 4);
    });
  for (std::thread& thread : threads) thread.join();
  for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

// Every call in a forked child fails; the parent, which uses the library, is not affected.
SETO_TEST_ALONE(ApiEnding, calls_in_forked_children_fail) {
  ThreadRanks ranks(2);
  const setoComm_t comm = ranks[0];
  ChildProcess child([comm] {
    setoUniqueId id;
    setoComm_t other = nullptr;
    float value = 0;
    const bool refused =
        failed(setoBarrier(comm, nullptr), setoInvalidUsage, "forked") &&
        failed(setoGetUniqueId(&id), setoInvalidUsage, "forked") &&
        failed(setoCommInitRank(&other, 1, id, 0), setoInvalidUsage, "forked") &&
        failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr), setoInvalidUsage, "forked") &&
        failed(setoCommDestroy(comm), setoInvalidUsage, "forked");
    if (!refused) std::printf("%s\n", setoGetLastError(comm));
    return refused;
  });
  EXPECT_TRUE(child.wait());
  ranks.each([](setoComm_t own, int) {
    float value = 1;
    EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, own, nullptr)));
    EXPECT_EQ(value, 2);
  });
}

// Shared between forked ranks before they have a communicator.
struct Announced {
  std::atomic<int> ready{0};
  setoUniqueId id;
};

bool join(Announced& shared, int rank, int ranks, setoComm_t* comm) {
  if (rank == 0) {
    if (!succeeded(setoGetUniqueId(&shared.id))) return false;
    shared.ready.store(1);
  }
  const Deadline until = Deadline::after_ms(20'000);
  while (shared.ready.load() == 0 && !until.passed()) std::this_thread::yield();
  const setoResult_t result = setoCommInitRank(comm, ranks, shared.id, rank);
  if (result != setoSuccess) std::printf("rank %d: %s\n", rank, setoGetLastError(nullptr));
  return result == setoSuccess;
}

// A separate test process, because in a process that has used the library forked children would be rejected.
class ApiProcesses : public ::testing::Test {
 protected:
  static std::vector<ChildProcess> start(Announced& shared, int ranks, const std::function<bool(setoComm_t, int)>& body) {
    std::vector<ChildProcess> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.emplace_back([&shared, &body, rank, ranks] {
        setoComm_t comm = nullptr;
        return join(shared, rank, ranks, &comm) && body(comm, rank);
      });
    return children;
  }
};

TEST_F(ApiProcesses, work_together) {
  const Shared<Announced> page;
  const std::function<bool(setoComm_t, int)> body = [](setoComm_t comm, int rank) {
    std::vector<float> values(50'000, static_cast<float>(rank));
    return setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr) == setoSuccess &&
           values[49'999] == 3 && setoCommDestroy(comm) == setoSuccess;
  };
  for (ChildProcess& child : start(*page, 3, body)) EXPECT_TRUE(child.wait());
}

TEST_F(ApiProcesses, a_killed_rank_is_named) {
  const Shared<Announced> page;
  const std::function<bool(setoComm_t, int)> body = [](setoComm_t comm, int rank) {
    float value = 1;
    if (setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr) != setoSuccess) return false;
    if (rank == 1) raise(SIGKILL);
    const Deadline limit = Deadline::after_ms(20'000);  // KilledRank measures how soon; without the notice it takes half an hour
    const bool named = failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr), setoRemoteError, "rank 1");
    if (!named || limit.passed()) std::printf("rank %d: %s\n", rank, setoGetLastError(comm));
    return named && !limit.passed() && setoCommDestroy(comm) == setoSuccess;
  };
  std::vector<ChildProcess> children = start(*page, 3, body);
  EXPECT_TRUE(children[0].wait());
  EXPECT_FALSE(children[1].wait());
  EXPECT_TRUE(children[2].wait());
}

}  // namespace
}  // namespace seto::testing

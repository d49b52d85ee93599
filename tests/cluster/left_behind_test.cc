#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/leftovers.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

// Every way in which a job can end. Nothing of it may remain.
struct Ending {
  const char* name;
  int killed;  // number of killed ranks, from rank 0
  setoResult_t (*end)(setoComm_t comm, const Seat& seat);
};

setoResult_t destroy(setoComm_t comm, const Seat&) { return setoCommDestroy(comm); }
setoResult_t abort_it(setoComm_t comm, const Seat&) { return setoCommAbort(comm); }
setoResult_t leave_it(setoComm_t, const Seat&) { return setoSuccess; }
setoResult_t disagree(setoComm_t comm, const Seat& seat) {
  std::vector<float> values(100'000, 1.0F);
  EXPECT_EQ(setoAllReduce(values.data(), values.data(), values.size() - static_cast<std::size_t>(seat.rank), setoFloat32, setoSum,
                          comm, nullptr),
            setoRemoteError);
  return setoCommDestroy(comm);
}

const Ending kEndings[] = {
    {"Destroy", 0, destroy},       {"Abort", 0, abort_it},    {"ExitWithout", 0, leave_it},
    {"Disagreement", 0, disagree}, {"OneKilled", 1, destroy}, {"AllKilled", 4, destroy},
};

class LeftBehind : public ::testing::TestWithParam<Ending> {};

TEST_P(LeftBehind, Nothing) {
  const Ending& ending = GetParam();
#ifdef SETO_SANITIZED
  if (std::string(ending.name) == "ExitWithout")
    GTEST_SKIP() << "skipped: a communicator is not destroyed on purpose, which the leak checker reports";
#endif
  constexpr int kRanks = 4;
  const std::set<std::string> before = shared_memory_files();
  Job job(Kind::processes, kRanks, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    if (ending.killed > 0) {
      std::vector<float> values(1 << 20, 1.0F);
      while (setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoMax, comm, nullptr) == setoSuccess)
        seat.board.counter[static_cast<std::size_t>(seat.rank)].fetch_add(1);
    } else {
      seat.meet(1);
      while (seat.board.signal.load() == 0) std::this_thread::yield();
    }
    EXPECT_EQ(ending.end(comm, seat), setoSuccess);
  });
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(job.reached(rank, ending.killed > 0 ? 3 : 1));
  const std::set<std::string> sockets = job.sockets();
  EXPECT_GE(sockets.size(), static_cast<std::size_t>(kRanks))
      << "each process has a listening socket, or this test checks nothing";
  job.board().signal = 1;
  for (int rank = 0; rank < ending.killed; ++rank) job.kill(rank);
  job.finish();
  for (const std::string& name : still_open(sockets)) ADD_FAILURE() << "local socket " << name << " was left behind";
  for (const std::string& name : shared_memory_files()) EXPECT_EQ(before.count(name), 1U) << name << " was left behind";
}

INSTANTIATE_TEST_SUITE_P(Cluster, LeftBehind, ::testing::ValuesIn(kEndings),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace seto::testing

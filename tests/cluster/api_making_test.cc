#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/providers/in_process.h"
#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

void expect_works(setoComm_t comm, int ranks) {
  const float mine = 1;
  float all = 0;
  EXPECT_TRUE(succeeded(setoAllReduce(&mine, &all, 1, setoFloat32, setoSum, comm, nullptr)));
  EXPECT_EQ(all, static_cast<float>(ranks));
}

void on_threads(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

SETO_TEST_ALONE(ApiMaking, by_unique_id) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  on_threads(3, [&](int rank) {
    setoComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitRank(&comm, 3, id, rank)));
    int number = -7;
    EXPECT_TRUE(succeeded(setoCommCount(comm, &number)));
    EXPECT_EQ(number, 3);
    EXPECT_TRUE(succeeded(setoCommUserRank(comm, &number)));
    EXPECT_EQ(number, rank);
    EXPECT_TRUE(succeeded(setoCommCuDevice(comm, &number)));
    EXPECT_EQ(number, -1);
    expect_works(comm, 3);
    EXPECT_TRUE(succeeded(setoCommFinalize(comm)));
    EXPECT_TRUE(failed(setoBarrier(comm, nullptr), setoInvalidUsage, "finalized"));
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  });
}

SETO_TEST_ALONE(ApiMaking, by_job_id_again_and_again) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetJobId(&id)));
  on_threads(3, [&](int rank) {
    setoComm_t before = nullptr;
    for (int round = 0; round < 4; ++round) {
      setoComm_t comm = nullptr;
      ASSERT_TRUE(succeeded(setoCommInitRank(&comm, 3, id, rank)));
      expect_works(comm, 3);
      if (before != nullptr) {
        EXPECT_TRUE(succeeded(setoCommDestroy(before)));
      }
      before = comm;
    }
    EXPECT_TRUE(succeeded(setoCommDestroy(before)));
  });
}

int threads_of_process() {
  std::error_code none;
  const auto all = std::filesystem::directory_iterator("/proc/self/task", none);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// Each unused id must not keep a server thread and five descriptors for an hour.
SETO_TEST_ALONE(ApiMaking, by_several_ids) {
  setoUniqueId ids[4];
  for (setoUniqueId& id : ids) ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  const int with_servers = threads_of_process();
  on_threads(2, [&](int rank) {
    setoComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitRankScalable(&comm, 2, rank, 4, ids, nullptr)));
    expect_works(comm, 2);
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  });
  // The control thread was started in the meantime, and stays.
  const Deadline until = Deadline::after_ms(30'000);
  while (threads_of_process() > with_servers - 2 && !until.passed()) std::this_thread::yield();
  EXPECT_LE(threads_of_process(), with_servers - 2);
}

SETO_TEST_ALONE(ApiMaking, one_rank_alone) {
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoCommInitRank(&comm, 1, setoUniqueId{}, 0)));
  expect_works(comm, 1);
  EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

struct Exchange {
  std::shared_ptr<InProcessHub> hub;
  int rank;
};

int gather_through_hub(const void* mine, void* all, std::size_t size, void* argument) {
  const auto* const exchange = static_cast<Exchange*>(argument);
  const auto result =
      exchange->hub->all_gather(exchange->rank, std::string(static_cast<const char*>(mine), size), Deadline::after_ms(20'000));
  if (!result.ok()) return 1;
  char* where = static_cast<char*>(all);
  for (const std::string& message : result.value()) {
    std::memcpy(where, message.data(), size);
    where += size;
  }
  return 0;
}

SETO_TEST_ALONE(ApiMaking, by_callback) {
  auto hub = std::make_shared<InProcessHub>(3);
  on_threads(3, [&](int rank) {
    Exchange exchange{hub, rank};
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.bootstrap = {gather_through_hub, &exchange};
    setoComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comm, 3, setoUniqueId{}, rank, &config)));
    expect_works(comm, 3);
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  });
}

SETO_TEST_ALONE(ApiMaking, without_blocking) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.blocking = setoOff;
  std::vector<setoComm_t> comms(2);
  ASSERT_EQ(setoCommInitRankConfig(&comms[0], 2, id, 0, &config), setoInProgress);
  EXPECT_TRUE(failed(setoBarrier(comms[0], nullptr), setoInvalidUsage, "still being made"));  // the other rank has not started
  ASSERT_EQ(setoCommInitRankConfig(&comms[1], 2, id, 1, &config), setoInProgress);
  for (const setoComm_t comm : comms) EXPECT_EQ(settled(comm), setoSuccess);
  on_threads(2, [&](int rank) { expect_works(comms[static_cast<std::size_t>(rank)], 2); });
  for (const setoComm_t comm : comms) EXPECT_EQ(setoCommFinalize(comm), setoInProgress);
  for (const setoComm_t comm : comms) EXPECT_EQ(settled(comm), setoSuccess);
  for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

SETO_TEST_ALONE(ApiMaking, a_missing_rank_is_named_at_the_deadline) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.initTimeoutMs = 2000;
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(setoCommInitRankConfig(&comm, 2, id, 0, &config), setoTimeout, "rank 1"));
  EXPECT_EQ(comm, nullptr);
}

SETO_TEST_ALONE(ApiMaking, aborting_what_is_still_made_does_not_wait) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.blocking = setoOff;
  config.initTimeoutMs = 60'000;
  setoComm_t comm = nullptr;
  ASSERT_EQ(setoCommInitRankConfig(&comm, 2, id, 0, &config), setoInProgress);
  const std::uint64_t before = monotonic_ns();
  EXPECT_TRUE(succeeded(setoCommAbort(comm)));
  EXPECT_LT(monotonic_ns() - before, 30'000'000'000U);
}

SETO_TEST_ALONE(ApiMaking, several_ranks_of_one_thread_in_a_group) {
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  std::vector<setoComm_t> comms(3);
  ASSERT_TRUE(succeeded(setoGroupStart()));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(succeeded(setoCommInitRank(&comms[static_cast<std::size_t>(rank)], 3, id, rank)));
  ASSERT_TRUE(succeeded(setoGroupEnd()));
  on_threads(3, [&](int rank) { expect_works(comms[static_cast<std::size_t>(rank)], 3); });
  std::vector<setoComm_t> children(3);
  ASSERT_TRUE(succeeded(setoGroupStart()));
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(succeeded(setoCommSplit(comms[rank], 0, 0, &children[rank], nullptr)));
  ASSERT_TRUE(succeeded(setoGroupEnd()));
  on_threads(3, [&](int rank) { expect_works(children[static_cast<std::size_t>(rank)], 3); });
  for (const setoComm_t comm : children) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

SETO_TEST_ALONE(ApiMaking, split_orders_by_key_then_rank) {
  ThreadRanks ranks(5);
  ranks.each([](setoComm_t comm, int rank) {
    setoComm_t child = nullptr;
    const int color = rank == 4 ? SETO_SPLIT_NOCOLOR : rank % 2;
    ASSERT_TRUE(succeeded(setoCommSplit(comm, color, -rank, &child, nullptr)));
    if (rank == 4) {
      EXPECT_EQ(child, nullptr);
    } else {
      int new_rank = -1;
      EXPECT_TRUE(succeeded(setoCommUserRank(child, &new_rank)));
      EXPECT_EQ(new_rank, rank < 2 ? 1 : 0);
      expect_works(child, 2);
      EXPECT_TRUE(succeeded(setoCommDestroy(child)));
    }
    expect_works(comm, 5);
  });
}

SETO_TEST_ALONE(ApiMaking, a_split_that_one_rank_gets_wrong_fails_everywhere) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int rank) {
    setoComm_t child = nullptr;
    const setoResult_t result = setoCommSplit(comm, rank == 0 ? -5 : 0, 0, &child, nullptr);
    if (rank == 0) {
      EXPECT_TRUE(failed(result, setoInvalidArgument, "color: -5"));
    } else {
      EXPECT_TRUE(failed(result, setoRemoteError, "rank 0"));
    }
    EXPECT_EQ(child, nullptr);
    expect_works(comm, 2);
  });
}

SETO_TEST_ALONE(ApiMaking, contexts_are_shared_and_outlive_nobody) {
  setoUniqueId ids[2];
  for (setoUniqueId& id : ids) ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  on_threads(2, [&](int rank) {
    setoContext_t context = nullptr;
    ASSERT_TRUE(succeeded(setoContextCreate(&context, nullptr)));
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.context = context;
    setoComm_t comms[2] = {};
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comms[i], 2, ids[i], rank, &config)));
    for (const setoComm_t comm : comms) expect_works(comm, 2);
    EXPECT_TRUE(failed(setoContextDestroy(context), setoInvalidUsage, "uses it"));
    for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
    EXPECT_TRUE(succeeded(setoContextDestroy(context)));
  });
}

// The description of the host of this rank, which the first rank of each host gives.
std::string own_topology(setoComm_t comm) {
  std::string text(std::size_t{1} << 20, '\0');
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoCommTopology(comm, text.data(), text.size(), &size)));
  return text.substr(0, size);
}

SETO_TEST_ALONE(ApiMaking, communicators_of_a_context_are_where_it_says) {
  setoUniqueId ids[2];
  for (setoUniqueId& id : ids) ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  on_threads(2, [&](int rank) {
    const std::string host = rank == 0 ? "left-host" : "right-host";
    setoConfig_t where = SETO_CONFIG_INITIALIZER;
    where.hostId = host.c_str();
    where.siteId = "of-the-context";
    setoContext_t context = nullptr;
    ASSERT_TRUE(succeeded(setoContextCreate(&context, &where)));
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.context = context;
    setoComm_t apart = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&apart, 2, ids[0], rank, &config)));
    expect_works(apart, 2);
    const std::string found = own_topology(apart);
    EXPECT_NE(found.find(host), std::string::npos) << found;
    EXPECT_NE(found.find("of-the-context"), std::string::npos) << found;
    setoConfig_t together = config;
    together.hostId = "both-here";
    setoComm_t near = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&near, 2, ids[1], rank, &together)));
    expect_works(near, 2);
    EXPECT_EQ(own_topology(near).find("both-here") != std::string::npos, rank == 0) << "ranks of one host";
    setoComm_t child = nullptr;
    ASSERT_TRUE(succeeded(setoCommSplit(apart, 0, rank, &child, nullptr)));
    EXPECT_NE(own_topology(child).find(host), std::string::npos) << "a child is where its parent is";
    for (const setoComm_t comm : {child, near, apart}) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
    EXPECT_TRUE(succeeded(setoContextDestroy(context)));
  });
}

SETO_TEST_ALONE(ApiMaking, unknown_variables_are_refused_by_name) {
  ASSERT_EQ(setenv("SETO_ALGORITM", "ring", 1), 0);
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(setoCommInitRank(&comm, 1, setoUniqueId{}, 0), setoInvalidArgument, "SETO_ALGORITHM"));
  ASSERT_EQ(unsetenv("SETO_ALGORITM"), 0);
}

}  // namespace
}  // namespace seto::testing

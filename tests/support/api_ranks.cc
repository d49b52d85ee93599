#include "tests/support/api_ranks.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/support/child_process.h"

namespace seto::testing {
namespace {

struct SharedId {
  std::atomic<int> there{0};
  std::atomic<int> joined{0};  // the rank that made the id stays until all have joined
  setoUniqueId id;
};

bool run_threads(int ranks, const std::function<void(ApiRank&)>& body) {
  ChildProcess child([&] {
    std::vector<setoComm_t> comms(static_cast<std::size_t>(ranks));
    EXPECT_EQ(outcome(setoCommInitAll(comms.data(), ranks, nullptr)), "setoSuccess");
    if (::testing::Test::HasFailure()) return false;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        ApiRank own{rank, ranks, comms[static_cast<std::size_t>(rank)]};
        body(own);
        if (own.comm != nullptr) setoCommDestroy(own.comm);
      });
    for (std::thread& thread : threads) thread.join();
    return exit_like_a_program(true);
  });
  return child.wait();
}

bool run_process(int rank, int ranks, SharedId& shared, const std::function<void(ApiRank&)>& body) {
  if (rank == 0) {
    EXPECT_EQ(outcome(setoGetUniqueId(&shared.id)), "setoSuccess");
    shared.there.store(1, std::memory_order_release);
  }
  while (shared.there.load(std::memory_order_acquire) == 0) sched_yield();
  ApiRank own{rank, ranks, nullptr};
  EXPECT_EQ(outcome(setoCommInitRank(&own.comm, ranks, shared.id, rank)), "setoSuccess");
  shared.joined.fetch_add(1);
  while (rank == 0 && shared.joined.load() < ranks) sched_yield();
  if (own.comm == nullptr) return false;
  body(own);
  if (own.comm != nullptr) setoCommDestroy(own.comm);
  return true;
}

bool run_processes(int ranks, const std::function<void(ApiRank&)>& body) {
  void* const page = mmap(nullptr, sizeof(SharedId), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  auto* const shared = new (page) SharedId;
  std::vector<ChildProcess> children;
  children.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    children.emplace_back([&, rank] { return exit_like_a_program(run_process(rank, ranks, *shared, body)); });
  bool passed = true;
  for (ChildProcess& child : children) passed = child.wait() && passed;
  munmap(page, sizeof(SharedId));
  return passed;
}

}  // namespace

bool run_ranks(Ranks kind, int ranks, const std::function<void(ApiRank&)>& body) {
  return kind == Ranks::as_threads ? run_threads(ranks, body) : run_processes(ranks, body);
}

bool run_alone(const std::function<void()>& body) {
  ChildProcess child([&] {
    body();
    return exit_like_a_program(true);
  });
  return child.wait();
}

std::string outcome(setoResult_t result) {
  if (result == setoSuccess) return "setoSuccess";
  return std::string(setoGetErrorString(result)) + ": " + setoGetLastError(nullptr);
}

}  // namespace seto::testing

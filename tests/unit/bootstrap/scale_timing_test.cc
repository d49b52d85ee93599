// Many ranks, as threads of eight processes: the time of an init, and the bytes at the root.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using testing::ChildProcess;
using testing::loopback_network;
using testing::Place;

constexpr int kProcesses = 8;
#ifdef SETO_SANITIZED
constexpr int kSlower = 10;
#else
constexpr int kSlower = 1;
#endif

// Shared memory through which the first process passes its id to the others.
struct Board {
  std::atomic<bool> written{false};
  UniqueIdBytes id{};
};

Board* shared_board() {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Board;
}

bool gather_part(const UniqueIdBytes& id, int part, int size) {
  const std::string mine(400, 'm');
  const auto answers = as_threads(size / kProcesses, [&](Rank index) -> Answer {
    const Rank rank = index * kProcesses + part;
    const Deadline until = Deadline::after_ms(60'000);
    auto bootstrap = RendezvousBootstrap::join(id, rank, size, until, loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    auto all = bootstrap->all_gather(mine, until);
    if (!all.ok()) return all;
    EXPECT_EQ(all->size(), static_cast<std::size_t>(size));
    return bootstrap->all_gather({}, until);
  });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  return !::testing::Test::HasFailure();
}

struct Shape {
  int size;
  bool over_tcp;
  std::uint64_t limit_ms;
  std::uint64_t limit_bytes;  // limit at the root for each rank: log2(size) KiB
};

struct Measured {
  std::uint64_t took_ms = ~std::uint64_t{0};
  std::uint64_t bytes = ~std::uint64_t{0};  // at the root for each rank
};

Measured measure(const Shape& shape) {
  Board* board = shared_board();
  EXPECT_NE(board, nullptr);
  if (board == nullptr) return {};
  std::fflush(nullptr);  // otherwise every child would print it again
  std::vector<ChildProcess> others;
  for (int part = 1; part < kProcesses; ++part) {
    others.emplace_back([&, part] {
      while (!board->written) std::this_thread::yield();
      return gather_part(board->id, part, shape.size);
    });
  }
  const std::uint64_t start = monotonic_ns();
  Place place(UniqueId::Serves::communicator, Listeners::Reach::network);
  board->id = shape.over_tcp ? place.from_afar() : place.bytes;
  board->written = true;
  EXPECT_TRUE(gather_part(board->id, 0, shape.size));
  for (ChildProcess& other : others) EXPECT_TRUE(other.wait());
  const std::uint64_t took_ms = (monotonic_ns() - start) / 1'000'000;
  const std::uint64_t each = place.server->traffic() / static_cast<std::uint64_t>(shape.size);
  std::printf("%d ranks %s: %llu ms, %llu bytes at the root for each rank\n", shape.size,
              shape.over_tcp ? "over TCP" : "by local sockets", static_cast<unsigned long long>(took_ms),
              static_cast<unsigned long long>(each));
  munmap(board, sizeof(Board));
  return {took_ms, each};
}

void expect_fast_and_cheap(const Shape& shape) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // The root's process holds a socket for each rank, and the ends of its own ranks.
  if (limit.rlim_cur < static_cast<rlim_t>(2 * shape.size)) GTEST_SKIP() << "skipped: needs ulimit -n of twice the ranks";
  // The best of some tries counts, because the machine may take the cores away meanwhile.
  const std::uint64_t limit_ms = shape.limit_ms * kSlower;
  Measured best;
  for (int turn = 0; turn < 3 && (best.took_ms >= limit_ms || best.bytes > shape.limit_bytes); ++turn) best = measure(shape);
  EXPECT_LT(best.took_ms, limit_ms);
  EXPECT_LE(best.bytes, shape.limit_bytes);
}

TEST(Scale, OfManyRanks) {
  for (const bool over_tcp : {false, true}) expect_fast_and_cheap({256, over_tcp, 3'000, 8 * 1'024});
}

#ifndef SETO_SANITIZED  // a thousand threads on few cores; such a build does not measure time
TEST(Scale, OfAThousandRanks) { expect_fast_and_cheap({1'024, true, 15'000, 10 * 1'024}); }
#endif

}  // namespace
}  // namespace seto

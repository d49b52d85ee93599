// Communicators that are made at the same time over the same contexts. One rank may know a connection that its peer does not know
// yet, or never will.

#include <dirent.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "src/control/local/local_connector.h"
#include "src/core/connect/context.h"
#include "src/topology/host_identity.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kInitMs = 10'000;
constexpr std::size_t kThreads = 4;
#ifdef SETO_SANITIZED
constexpr int kRounds = 5;
#else
constexpr int kRounds = 80;
#endif

Config quick() {
  Config config;
  config.init_timeout_ms = kInitMs;
  config.operation_timeout_ms = kInitMs;
  config.calibrate = Calibrate::off;
  return config;
}

std::shared_ptr<Context> new_context() {
  Result<std::shared_ptr<Context>> made = Context::create(quick());
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? made.value() : nullptr;
}

std::shared_ptr<Communicator> make(Bootstrap&& bootstrap, const std::shared_ptr<Context>& context) {
  Result<std::shared_ptr<Communicator>> made = make_communicator(bootstrap, quick(), context);
  EXPECT_TRUE(made.ok()) << "rank " << bootstrap.rank() << ": " << made.status().text();
  return made.ok() ? std::move(made).value() : nullptr;
}

bool works(const std::shared_ptr<Communicator>& communicator) {
  if (communicator == nullptr) return false;
  const Status done = sum_over(*communicator);
  EXPECT_TRUE(done.ok()) << done.text();
  return done.ok();
}

int open_descriptors() {
  int count = 0;
  DIR* const open = opendir("/proc/self/fd");
  while (open != nullptr && readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

KnownConnections known_to(Context& context) { return context.known(host_identity({}).value()); }

struct SharedMemoryRanksTest {
  SharedMemoryRanks talk;
  SharedMemoryRanks x;
  SharedMemoryRanks y;
  SharedMemoryRanks z;
  std::atomic<bool> x_came{false};
};

std::vector<std::string> said(SharedMemoryRanks& room, const Seat& seat, std::string mine) {
  auto all = SharedMemoryBootstrap(room, {seat.rank, seat.ranks}).all_gather(std::move(mine), Deadline::after_ms(kInitMs));
  EXPECT_TRUE(all.ok()) << all.status().text();
  return all.ok() ? all.value() : std::vector<std::string>(static_cast<std::size_t>(seat.ranks));
}

// Checks two ranks that made both communicators: both use the same connection, and it stays alive when these communicators are
// gone.
void expect_agreement(SharedMemoryRanksTest& rooms, const Seat& seat, const std::shared_ptr<Context>& context,
                      std::size_t connections) {
  const KnownConnections known = known_to(*context);
  EXPECT_EQ(known.offered().size(), connections);
  std::string mine(reinterpret_cast<const char*>(known.offered().data()), known.offered().size() * sizeof(AttemptId));
  const std::vector<std::string> offers = said(rooms.talk, seat, mine);
  EXPECT_EQ(offers[0], offers[1]);
  const std::vector<std::string> processes = said(rooms.talk, seat, LocalConnector::of_process().value()->address());
  const std::vector<std::string> contexts = said(rooms.talk, seat, std::to_string(context->id()));
  const auto other = static_cast<std::size_t>(1 - seat.rank);
  const auto chosen = known.shared_with({processes[other], std::stoull(contexts[other]), 0}, known.offered());
  ASSERT_NE(chosen, nullptr);
  const std::vector<std::string> choices = said(rooms.talk, seat, std::to_string(chosen->peer().attempt));
  EXPECT_EQ(choices[0], choices[1]);
  const std::shared_ptr<Communicator> next = make(SharedMemoryBootstrap(rooms.z, {seat.rank, seat.ranks}), context);
  EXPECT_TRUE(works(next));
  EXPECT_EQ(known_to(*context).offered().size(), connections) << "one more communicator, but no more connections";
  said(rooms.talk, seat, {});  // no rank ends before that
}

// Whether this process is the one of the two that connects; both compute the same answer.
bool calls(SharedMemoryRanksTest& rooms, const Seat& seat) {
  const std::vector<std::string> all = said(rooms.talk, seat, LocalConnector::of_process().value()->address());
  const auto own = static_cast<std::size_t>(seat.rank);
  return all[own] < all[1 - own];
}

// One rank makes X and waits for its peer to end. Then both make Y, and only after that the peer looks for a connection that X
// may use.
TEST(AtOnce, AConnectionThatAppearsDuringAnInitDoesNotMakeAPeerWait) {
  const Shared<SharedMemoryRanksTest> rooms;
  run_ranks(Kind::processes, 2, [&](const Seat& seat) {
    const std::shared_ptr<Context> context = new_context();
    ASSERT_NE(context, nullptr);
    const bool early = calls(*rooms, seat);
    const int before = open_descriptors();
    std::atomic<bool> y_made{false};
    std::shared_ptr<Communicator> x;
    std::thread first([&] {
      Holds late;
      late.after = [&](int gather) { EXPECT_TRUE(early || gather > 1 || eventually([&] { return y_made.load(); })); };
      x = make(SharedMemoryBootstrap(rooms->x, {seat.rank, seat.ranks}, late), context);
    });
    Holds until_calling;  // connecting opens a descriptor, and nothing else in this process does
    until_calling.before = [&](int gather) {
      EXPECT_TRUE(!early || gather > 1 || eventually([&] { return open_descriptors() > before; }));
    };
    std::shared_ptr<Communicator> y = make(SharedMemoryBootstrap(rooms->y, {seat.rank, seat.ranks}, until_calling), context);
    y_made = true;
    first.join();
    EXPECT_TRUE(works(x) && works(y));
    x.reset();
    y.reset();
    expect_agreement(*rooms, seat, context, 2);
  });
}

// Rank 1 offers its connections, then both make Y, then rank 0 offers its connections.
TEST(AtOnce, AConnectionThatOnlyOneRankOffersIsNotUsed) {
  const Shared<SharedMemoryRanksTest> rooms;
  run_ranks(Kind::processes, 2, [&](const Seat& seat) {
    const std::shared_ptr<Context> context = new_context();
    ASSERT_NE(context, nullptr);
    const auto make_y = [&] { return make(SharedMemoryBootstrap(rooms->y, {seat.rank, seat.ranks}), context); };
    std::shared_ptr<Communicator> x, y;
    if (seat.rank == 0) {
      ASSERT_TRUE(eventually([&] { return rooms->x_came.load(); }));
      y = make_y();
      x = make(SharedMemoryBootstrap(rooms->x, {seat.rank, seat.ranks}), context);
    } else {
      Holds tells;
      tells.before = [&](int) { rooms->x_came = true; };
      std::thread first([&] { x = make(SharedMemoryBootstrap(rooms->x, {seat.rank, seat.ranks}, tells), context); });
      EXPECT_TRUE(eventually([&] { return rooms->x_came.load(); }));
      y = make_y();
      first.join();
    }
    EXPECT_TRUE(works(x) && works(y));
    y.reset();
    EXPECT_TRUE(works(x)) << "the end of one does not end the other";
    x.reset();
    expect_agreement(*rooms, seat, context, 2);
  });
}

struct ManyRooms {
  std::array<SharedMemoryRanks, kThreads> rooms;
  SharedMemoryRanks talk;
};

class AtOnceStress : public ::testing::TestWithParam<Kind> {};

TEST_P(AtOnceStress, ThreadsMakeAndDestroyOverSharedContexts) {
  const Shared<ManyRooms> shared;
  run_ranks(GetParam(), 3, [&](const Seat& seat) {
    const std::shared_ptr<Context> context = new_context();
    ASSERT_NE(context, nullptr);
    std::vector<std::thread> threads;
    for (SharedMemoryRanks& room : shared->rooms)
      threads.emplace_back([&] {
        std::shared_ptr<Communicator> last;
        for (int round = 0; round < kRounds; ++round) {
          std::shared_ptr<Communicator> one = make(SharedMemoryBootstrap(room, {seat.rank, seat.ranks}), context);
          if (!works(one)) return;
          if (last != nullptr && !works(last)) return;
          if (round % 3 != 0 || last == nullptr) last = std::move(one);  // otherwise the younger is destroyed first
        }
      });
    for (std::thread& thread : threads) thread.join();
    const std::size_t offered = known_to(*context).offered().size();
    EXPECT_LE(offered, kThreads) << "no more than were made before the first had ended";
    EXPECT_EQ(offered > 0, GetParam() == Kind::processes);
    said(shared->talk, seat, {});  // no rank ends before all have seen the others alive
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, AtOnceStress, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace seto::testing

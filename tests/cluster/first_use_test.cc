// Data connections over TCP that are opened on first use (SETO_CONNECT=used).

#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 32;
constexpr int kSites = 2;

// Connected TCP sockets of this process, from /proc.
std::uint64_t tcp_sockets() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  std::uint64_t count = 0;
  while (const dirent* const entry = readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    int protocol = 0;
    socklen_t size = sizeof protocol;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (entry->d_name[0] != '.' && getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      ++count;
  }
  return count;
}

// Those since a count before, once they are at most `most`. A peer that is slow to answer is called at its next address, too: the
// connection that comes second is closed soon.
std::uint64_t settled_tcp_sockets(std::uint64_t before, std::uint64_t most) {
  const Deadline until = Deadline::after_ms(10'000);
  std::uint64_t count = tcp_sockets() - before;
  for (; count > most && !until.passed(); count = tcp_sockets() - before) poll(nullptr, 0, 1);
  return count;
}

// Each process is a node of its own, and half of them are a site.
setoConfig_t config_of(int rank, std::string& host) {
  setoConfig_t config = config_of_test();
  host = "first use " + std::to_string(rank);
  config.hostId = host.c_str();
  config.siteId = rank < kRanks / kSites ? "east" : "west";
  return config;
}

void expect_sum(const Seat& seat, setoComm_t comm, std::size_t count) {
  std::vector<int> values(count, seat.rank + 1);
  const Answer done = answer(setoAllReduce(values.data(), values.data(), count, setoInt32, setoSum, comm, nullptr));
  EXPECT_EQ(done.code, setoSuccess) << done;
  EXPECT_EQ(values, std::vector<int>(count, seat.ranks * (seat.ranks + 1) / 2));
}

class FirstUse : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SETO_CONNECT", "used", 1);
    setenv("SETO_CALIBRATE", "off", 1);
  }
  void TearDown() override {
    for (const char* name :
         {"SETO_CONNECT", "SETO_CALIBRATE", "SETO_ALGORITHM", "SETO_TCP_STREAMS", "SETO_TRANSPORT", "SETO_LIVENESS_TIMEOUT_MS"})
      unsetenv(name);
  }
};

// 8 sockets for each pair, as a far pair has: all pairs would have 248 in each process.
TEST_F(FirstUse, OpensTheSocketsThatAHierarchicalSumUses) {
  setenv("SETO_ALGORITHM", "hierarchical", 1);
  setenv("SETO_TCP_STREAMS", "8", 1);
  setenv("SETO_LIVENESS_TIMEOUT_MS", "20000", 1);  // with a sanitizer 32 processes need more than 5 s to open 500 pairs
  constexpr std::uint64_t kControl = kRanks - 1;
  constexpr std::uint64_t kProved = 8;
  // At most all 15 others of the site, and one or two of the other site.
  constexpr std::uint64_t kAfterSum = std::uint64_t{8} * (kRanks / kSites - 1 + 2);
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    std::string host;
    const setoConfig_t config = config_of(seat.rank, host);
    const std::uint64_t before = tcp_sockets();
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    const std::uint64_t at_init = kControl + (seat.rank % (kRanks / kSites) == 0 ? kProved : 0);
    const std::uint64_t after_init = settled_tcp_sockets(before, at_init);
    EXPECT_LE(after_init, at_init);
    ASSERT_TRUE(seat.meet(1));
    expect_sum(seat, comm, 1000);
    expect_sum(seat, comm, 100'000);
    const std::uint64_t after_sum = settled_tcp_sockets(before, kControl + kAfterSum);
    seat.board.figure[static_cast<std::size_t>(seat.rank)].store(after_init << 32 | after_sum);
    EXPECT_LE(after_sum, kControl + kAfterSum);
    ASSERT_TRUE(seat.meet(2));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  job.finish();
  std::uint64_t most_after_init = 0;
  std::uint64_t most_after_sum = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::uint64_t figure = job.board().figure[static_cast<std::size_t>(rank)].load();
    most_after_init = std::max(most_after_init, figure >> 32);
    most_after_sum = std::max(most_after_sum, figure & 0xffff'ffff);
  }
  std::printf(
      "TCP sockets of a process, the most of %d: %llu after init, %llu after a hierarchical all_reduce, %llu of them for "
      "control; SETO_CONNECT=all opens %d\n",
      kRanks, static_cast<unsigned long long>(most_after_init), static_cast<unsigned long long>(most_after_sum),
      static_cast<unsigned long long>(kControl), (kRanks - 1) * 9);
}

// The rest is opened by calls that use it.
TEST_F(FirstUse, EveryPairIsThereForCallsThatUseIt) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  for (const Kind kind : {Kind::processes, Kind::threads})
    run_ranks(kind, 6, [](const Seat& seat) {
      const setoComm_t comm = seat.join();
      ASSERT_NE(comm, nullptr);
      std::vector<int> to(6);
      std::vector<int> from(6, -1);
      std::iota(to.begin(), to.end(), 10 * seat.rank);
      const Answer done = answer(setoAlltoAll(to.data(), from.data(), 1, setoInt32, comm, nullptr));
      EXPECT_EQ(done.code, setoSuccess) << done;
      for (int peer = 0; peer < 6; ++peer) EXPECT_EQ(from[static_cast<std::size_t>(peer)], 10 * peer + seat.rank);
      expect_sum(seat, comm, 50'000);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
}

// Its data waits for a connection that is not open when the sender's last call has ended.
TEST_F(FirstUse, AMessageArrivesThoughItsSenderIsGone) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  for (const int sender : {0, 1})
    run_ranks(Kind::processes, 2, [sender](const Seat& seat) {
      const setoComm_t comm = seat.join();
      ASSERT_NE(comm, nullptr);
      int value = seat.rank == sender ? 42 : 0;
      if (seat.rank == sender) {
        EXPECT_EQ(answer(setoSend(&value, 1, setoInt32, 1 - sender, comm, nullptr)).code, setoSuccess);
        EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
        ASSERT_TRUE(seat.meet(1));
        return;
      }
      ASSERT_TRUE(seat.meet(1));
      const Answer done = answer(setoRecv(&value, 1, setoInt32, sender, comm, nullptr));
      EXPECT_EQ(done.code, setoSuccess) << done;
      EXPECT_EQ(value, 42);
      const Answer more = answer(setoRecv(&value, 1, setoInt32, sender, comm, nullptr));
      EXPECT_EQ(more.code, setoRemoteError) << more << ": it left, and nothing more can arrive";
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
}

// It never sent anything, so no frame says that it left.
TEST_F(FirstUse, ARankThatLeftWithoutAWordIsNamedAtOnce) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    if (seat.rank == 0) {
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
      ASSERT_TRUE(seat.meet(1));
      return;
    }
    ASSERT_TRUE(seat.meet(1));
    int value = 0;
    const Answer done = answer(setoRecv(&value, 1, setoInt32, 0, comm, nullptr));
    EXPECT_EQ(done.code, setoRemoteError) << done;
    EXPECT_TRUE(done.says("rank 0")) << done;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST_F(FirstUse, AProcessThatDiesBeforeItAnswersIsNamed) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  for (const int victim : {0, 1}) {
    Job job(Kind::processes, 2, [victim](const Seat& seat) {
      const setoComm_t comm = seat.join();
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(seat.meet(1));
      if (seat.rank == victim) {
        (void)seat.meet(2);  // it is killed here
        return;
      }
      std::vector<int> values(1'000'000, 1);
      const Answer done = answer(setoSend(values.data(), values.size(), setoInt32, victim, comm, nullptr));
      EXPECT_EQ(done.code, setoRemoteError) << done;
      EXPECT_TRUE(done.says("rank " + std::to_string(victim))) << done;
      EXPECT_EQ(setoCommAbort(comm), setoSuccess);
    });
    for (const int rank : {0, 1}) ASSERT_TRUE(job.reached(rank, 1));  // or the survivor waits for a victim that is dead
    job.kill(victim);
    job.finish();
  }
}

// The operation that needs the connection fails, and the text says which and what to do.
TEST_F(FirstUse, WithoutDescriptorsTheErrorNamesThePairAndTheLimit) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet(1));
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit none = before;
    none.rlim_cur = 3;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    ASSERT_TRUE(seat.meet(2));
    std::vector<int> values(1'000'000, 1);
    const Answer done = answer(seat.rank == 0 ? setoSend(values.data(), values.size(), setoInt32, 1, comm, nullptr)
                                              : setoRecv(values.data(), values.size(), setoInt32, 0, comm, nullptr));
    EXPECT_EQ(done.code, setoRemoteError) << done;
    EXPECT_TRUE(done.says("the data connection of rank")) << done;
    EXPECT_TRUE(done.says("ulimit -n")) << done;
    EXPECT_FALSE(done.says("firewalls")) << done;
    ASSERT_TRUE(seat.meet(3));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// A later communicator of the same contexts uses the connections, open or not.
TEST_F(FirstUse, SplitsUseTheConnectionsOfTheirParent) {
  run_ranks(Kind::processes, 4, [](const Seat& seat) {
    std::string host;
    const setoConfig_t config = config_of(seat.rank, host);
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    const std::uint64_t at_init = tcp_sockets();
    for (int round = 0; round < 3; ++round) {
      setoComm_t half = nullptr;
      ASSERT_EQ(answer(setoCommSplit(comm, seat.rank % 2, seat.rank, &half, nullptr)).code, setoSuccess);
      int value = seat.rank;
      EXPECT_EQ(answer(setoAllReduce(&value, &value, 1, setoInt32, setoSum, half, nullptr)).code, setoSuccess);
      EXPECT_EQ(value, seat.rank % 2 == 0 ? 2 : 4);
      EXPECT_EQ(setoCommDestroy(half), setoSuccess);
    }
    EXPECT_LE(tcp_sockets(), at_init + 3) << "at most one for each peer";
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST_F(FirstUse, RanksThatDisagreeAreTold) {
  setenv("SETO_TRANSPORT", "tcp", 1);
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    setenv("SETO_CONNECT", seat.rank == 2 ? "all" : "used", 1);
    setoComm_t comm = nullptr;
    setoConfig_t config = config_of_test();
    const Answer done = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
    EXPECT_EQ(done.code, setoInvalidUsage) << done;
    EXPECT_TRUE(done.says("SETO_CONNECT is 'used' on rank 0 and 'all' on rank 2")) << done;
  });
}

}  // namespace
}  // namespace seto::testing

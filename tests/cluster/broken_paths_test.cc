// A pair of ranks with several TCP sockets, some of which are reset while calls run: the calls go on, with the same bits.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace seto::testing {
namespace {

constexpr int kCodePoint = 10;  // marks data sockets: control sockets have none
constexpr int kSockets = 4;
constexpr int kCalls = 200;
constexpr int kCallsOfOneReset = 50;

// Second descriptors of the data sockets of this process that are connected.
std::vector<Fd> data_sockets() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  std::vector<Fd> found;
  while (const dirent* const entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    Fd fd(fcntl(std::atoi(entry->d_name), F_DUPFD_CLOEXEC, 0));
    int tos = 0;
    socklen_t size = sizeof tos;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (fd.valid() && getsockopt(fd.get(), IPPROTO_IP, IP_TOS, &tos, &size) == 0 && tos >> 2 == kCodePoint &&
        getpeername(fd.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
      found.push_back(std::move(fd));
  }
  return found;
}

// As a firewall does that forgets a connection: the peer gets a reset, and what this end has not read is lost.
void reset(const Fd& fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  (void)connect(fd.get(), &nowhere, sizeof nowhere);
}

// The number of wrong elements.
std::size_t sum_in_place(const Seat& seat, setoComm_t comm, int call, std::vector<float>& values) {
  const std::size_t count = call % 3 == 0 ? values.size() : 1 + static_cast<std::size_t>(call) * 37;
  const auto value = [call](std::size_t i, int rank) {
    return static_cast<float>((i + static_cast<std::size_t>(rank + call)) % 7);
  };
  for (std::size_t i = 0; i < count; ++i) values[i] = value(i, seat.rank);
  const Answer done = answer(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr));
  EXPECT_EQ(done.code, setoSuccess) << "call " << call << ": " << done;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += values[i] != value(i, 0) + value(i, 1) ? 1 : 0;
  return wrong;
}

class BrokenPaths : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_TCP_STREAMS", std::to_string(kSockets).c_str(), 1);
    setenv("SETO_DSCP_DATA", std::to_string(kCodePoint).c_str(), 1);
    setenv("SETO_CALIBRATE", "off", 1);
    setenv("SETO_CONNECT", "all", 1);
    setenv("SETO_CODEC", GetParam(), 1);
  }
  void TearDown() override {
    for (const char* name : {"SETO_TCP_STREAMS", "SETO_DSCP_DATA", "SETO_CALIBRATE", "SETO_CONNECT", "SETO_CODEC"})
      unsetenv(name);
  }
};

INSTANTIATE_TEST_SUITE_P(All, BrokenPaths, ::testing::Values("none", "fp16"), [](const auto& one) { return one.param; });

TEST_P(BrokenPaths, SumsInPlaceStayRightWhileAllSocketsButOneAreReset) {
  const std::uint64_t seed = chosen_seed();
  run_ranks(Kind::processes, 2, [seed](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet(1));
    EXPECT_EQ(data_sockets().size(), static_cast<std::size_t>(kSockets));
    std::atomic<int> begun{0};
    std::thread cutter([&] {
      std::mt19937_64 random(seed);
      for (int next = kCallsOfOneReset; next < kCalls; next += kCallsOfOneReset) {
        while (begun.load() < next) sched_yield();
        for (std::uint64_t turns = random() % 200; turns > 0; --turns) sched_yield();
        const std::vector<Fd> sockets = data_sockets();
        if (seat.rank == 0 && sockets.size() > 1) reset(sockets[random() % sockets.size()]);
      }
    });
    std::vector<float> values(300'000);
    for (int call = 0; call < kCalls; ++call) {
      begun = call;
      EXPECT_EQ(sum_in_place(seat, comm, call, values), 0U) << "call " << call;
    }
    begun = kCalls;
    cutter.join();
    EXPECT_TRUE(seat.meet(2));
    EXPECT_LT(data_sockets().size(), static_cast<std::size_t>(kSockets));
    EXPECT_EQ(answer(setoCommDestroy(comm)).code, setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing

// Pairs of ranks with several TCP sockets whose sockets are reset while calls run: the calls go on, with the same bits.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace seto::testing {
namespace {

constexpr int kCodePoint = 10;  // marks data sockets: control sockets have none
constexpr int kCalls = 200;

// A second descriptor of a data socket of this process; the one that was looked at may be closed meanwhile.
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

class BrokenPaths : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_TCP_STREAMS", "4", 1);
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

TEST_P(BrokenPaths, SumsInPlaceStayRightWhileSocketsAreReset) {
  const std::uint64_t seed = chosen_seed();
  run_ranks(Kind::processes, 3, [seed](const Seat& seat) {
    const setoComm_t comm = seat.join(config_of_test());
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet(1));
    std::atomic<bool> over{false};
    std::uint64_t resets = 0;
    std::thread cutter([&] {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(seat.rank));
      while (!over.load()) {
        (void)poll(nullptr, 0, static_cast<int>(10 + random() % 40));
        const std::vector<Fd> sockets = data_sockets();
        if (sockets.empty()) continue;
        const std::size_t count = random() % 20 == 0 ? sockets.size() : 1;
        for (std::size_t i = 0; i < count; ++i) reset(sockets[count == 1 ? random() % sockets.size() : i]);
        resets += count;
      }
    });
    constexpr std::size_t kMost = 300'000;
    std::vector<float> values(kMost);
    for (int call = 0; call < kCalls; ++call) {
      const std::size_t count = call % 3 == 0 ? kMost : 1 + static_cast<std::size_t>(call) * 37;
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((i + static_cast<std::size_t>(seat.rank + call)) % 7);
      const Answer done = answer(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr));
      EXPECT_EQ(done.code, setoSuccess) << "call " << call << ": " << done;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int rank = 0; rank < seat.ranks; ++rank) sum += static_cast<float>((i + static_cast<std::size_t>(rank + call)) % 7);
        wrong += values[i] != sum;
      }
      EXPECT_EQ(wrong, 0U) << "call " << call;
      if (done.code != setoSuccess || wrong > 0) break;
    }
    EXPECT_TRUE(seat.meet(2));
    over = true;
    cutter.join();
    EXPECT_GT(resets, 10U);
    EXPECT_TRUE(seat.meet(3));
    EXPECT_EQ(answer(setoCommDestroy(comm)).code, setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing

// Pairs of ranks with several TCP sockets, which are reset while calls run: the calls go on, with the same bits, and the sockets
// are dialed again.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace seto::testing {
namespace {

constexpr int kCodePoint = 10;  // marks data sockets: control sockets have none
constexpr std::size_t kSockets = 4;
constexpr int kRanks = 3;
constexpr int kCalls = 150;
constexpr int kMostCuts = 40;  // of a rank: a slow machine needs sockets that last
constexpr int kMostLooks = 4'000;

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
  if (done.code != setoSuccess) return 1;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < seat.ranks; ++rank) sum += value(i, rank);
    wrong += values[i] != sum ? 1 : 0;
  }
  return wrong;
}

// Resets data sockets of this process at random times, sometimes all of them at once.
class Cutter final {
 public:
  explicit Cutter(std::uint64_t seed) : random_(seed), thread_([this] { run(); }) {}
  ~Cutter() {
    over_ = true;
    thread_.join();
  }

 private:
  void run() {
    for (int cut = 0; cut < kMostCuts && !over_.load(); ++cut) {
      (void)poll(nullptr, 0, static_cast<int>(5 + random_() % 40));
      const std::vector<Fd> sockets = data_sockets();
      if (sockets.empty()) continue;
      const bool all = random_() % 8 == 0;
      const std::size_t one = random_() % sockets.size();
      for (std::size_t i = 0; i < sockets.size(); ++i)
        if (all || i == one) reset(sockets[i]);
    }
  }

  std::mt19937_64 random_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Calls until all ranks have all their sockets: no thread looks at sockets between calls.
bool all_are_back(const Seat& seat, setoComm_t comm) {
  const std::size_t wanted = kSockets * static_cast<std::size_t>(seat.ranks - 1);
  for (int look = 0; look < kMostLooks; ++look) {
    float missing = static_cast<float>(wanted) - static_cast<float>(std::min(wanted, data_sockets().size()));
    if (setoAllReduce(&missing, &missing, 1, setoFloat32, setoSum, comm, nullptr) != setoSuccess) return false;
    if (missing == 0) return true;
    (void)poll(nullptr, 0, 5);
  }
  return false;
}

using Setting = std::tuple<const char*, const char*>;  // SETO_CODEC, SETO_CONNECT

class BrokenPaths : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_TCP_STREAMS", std::to_string(kSockets).c_str(), 1);
    setenv("SETO_DSCP_DATA", std::to_string(kCodePoint).c_str(), 1);
    setenv("SETO_CALIBRATE", "off", 1);
    setenv("SETO_RESUME", "on", 1);
    setenv("SETO_CODEC", std::get<0>(GetParam()), 1);
    setenv("SETO_CONNECT", std::get<1>(GetParam()), 1);
  }
  void TearDown() override {
    for (const char* name : {"SETO_TCP_STREAMS", "SETO_DSCP_DATA", "SETO_CALIBRATE", "SETO_RESUME", "SETO_CODEC", "SETO_CONNECT"})
      unsetenv(name);
  }
};

INSTANTIATE_TEST_SUITE_P(All, BrokenPaths,
                         ::testing::Values(Setting("none", "all"), Setting("fp16", "all"), Setting("none", "used")),
                         [](const auto& one) { return std::string(std::get<0>(one.param)) + "_" + std::get<1>(one.param); });

TEST_P(BrokenPaths, SumsInPlaceStayRightWhileSocketsAreResetAndAllAreDialedAgain) {
  const std::uint64_t seed = chosen_seed();
  run_ranks(Kind::processes, kRanks, [seed](const Seat& seat) {
    const setoComm_t comm = seat.join(config_of_test());
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(300'000);
    EXPECT_EQ(sum_in_place(seat, comm, 0, values), 0U);
    ASSERT_TRUE(seat.meet(1));
    {
      const Cutter cutter(seed + static_cast<std::uint64_t>(seat.rank));
      std::size_t wrong = 0;
      for (int call = 1; call < kCalls && wrong == 0; ++call) {
        wrong = sum_in_place(seat, comm, call, values);
        EXPECT_EQ(wrong, 0U) << "call " << call;
      }
      EXPECT_TRUE(seat.meet(2));
    }
    EXPECT_TRUE(seat.meet(3));
    EXPECT_TRUE(all_are_back(seat, comm));
    EXPECT_EQ(sum_in_place(seat, comm, 3, values), 0U);
    EXPECT_EQ(answer(setoCommDestroy(comm)).code, setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing

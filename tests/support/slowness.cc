#include "tests/support/slowness.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/support/child_process.h"

namespace seto::testing {
namespace {

constexpr int kRoundTrips = 3000;
constexpr double kUsualUs = 12;  // two idle cores of an AMD EPYC, kernel 6.1: 11 to 12

// Returns each byte to its sender, until that one closes its end.
bool echo(int socket) {
  for (char byte = 0; read(socket, &byte, 1) == 1;)
    if (write(socket, &byte, 1) != 1) return false;
  return true;
}

double us_of_a_round_trip() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 0;
  ChildProcess other([&ends] {
    close(ends[0]);
    return echo(ends[1]);
  });
  close(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  bool arrived = true;
  char byte = 0;
  for (int done = 0; done < kRoundTrips && arrived; ++done)
    arrived = write(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  close(ends[0]);
  EXPECT_TRUE(arrived);
  EXPECT_TRUE(other.wait());
  return took.count() / kRoundTrips;
}

}  // namespace

double slowness() { return std::max(1.0, us_of_a_round_trip() / kUsualUs); }

}  // namespace seto::testing

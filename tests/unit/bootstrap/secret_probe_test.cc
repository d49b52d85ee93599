// A rank asks whether others wait where it does not join.
#include "src/bootstrap/rendezvous/secret_probe.h"

#include <gtest/gtest.h>

#include "src/net/tcp_socket.h"

namespace seto {
namespace {

SecretProbe probe_of(const SocketAddress& address) {
  SecretProbe probe;
  probe.where.addresses = {address};
  probe.rank = 1;
  return probe;
}

// The kernel connects, and no process answers: one of a busy machine may be late.
TEST(SecretProbe, WaitsASecondForAnAnswer) {
  auto silent = listen_tcp({parse_host("127.0.0.1").value()}, {}, 16);
  ASSERT_TRUE(silent.ok()) << silent.status().text();
  const std::uint64_t start = monotonic_ns();
  EXPECT_FALSE(finds_another_secret(probe_of(silent->addresses.front())));
  EXPECT_GE(monotonic_ns() - start, 1'000'000'000U);
}

}  // namespace
}  // namespace seto

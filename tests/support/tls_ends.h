#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/config.h"
#include "src/base/fork.h"

namespace seto::testing {

// SETO_TLS of the connections of a test. The suites over TCP run again with SETO_TEST_TLS=always.
inline TlsMode tls_of_test() {
  const char* const text = std::getenv("SETO_TEST_TLS");
  return text != nullptr && std::string_view(text) == "always" ? TlsMode::always : TlsMode::sites;
}

inline std::pair<PrivateFd, PrivateFd> two_sockets() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {PrivateFd(Fd(fds[0])), PrivateFd(Fd(fds[1]))};
}

// Bytes as they are on their way.
inline std::string take_raw(const PrivateFd& fd) {
  std::string bytes(1 << 20, '\0');
  const ssize_t got = recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

inline void put_raw(const PrivateFd& fd, std::string_view bytes) {
  ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

}  // namespace seto::testing

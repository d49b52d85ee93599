#include "src/net/local_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "src/net/token.h"
#include "tests/support/child_process.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

TEST(LocalSocket, ConnectsAndCarriesBytes) {
  for (const SocketKind kind : {SocketKind::stream, SocketKind::packets}) {
    const std::string name = random_socket_name();
    auto listener = listen_local(name, kind);
    ASSERT_TRUE(listener.ok()) << listener.status().text();
    auto here = connect_local(name, kind, Deadline::after_ms(5'000));
    ASSERT_TRUE(here.ok()) << here.status().text();
    const PrivateFd there(Fd(accept(listener->get(), nullptr, nullptr)));
    ASSERT_TRUE(there.valid());
    EXPECT_TRUE(check_same_user(here->get()).ok());
    EXPECT_TRUE(check_same_user(there.get()).ok());
    ASSERT_EQ(send(here->get(), "x", 1, 0), 1);
    EXPECT_TRUE(wait_for(there.get(), POLLIN, Deadline::after_ms(5'000)).ok());
    char byte = 0;
    EXPECT_EQ(recv(here->get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
  }
}

TEST(LocalSocket, FailsIfNoProcessListens) {
  auto fd = connect_local(random_socket_name(), SocketKind::stream, Deadline::after_ms(5'000));
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.status().code(), Code::remote_error);
}

TEST(LocalSocket, SilenceEndsAtDeadline) {
  const std::string name = random_socket_name();
  auto listener = listen_local(name, SocketKind::packets);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(wait_for(listener->get(), POLLIN, Deadline::after_ms(20)).code(), Code::timeout);
}

TEST(LocalSocket, FullQueueEndsAtDeadline) {
  const std::string name = random_socket_name();
  auto listener = listen_local(name, SocketKind::packets);
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(listen(listener->get(), 1), 0);
  std::vector<PrivateFd> waiting;
  Code end = Code::ok;
  for (int index = 0; index < 10 && end == Code::ok; ++index) {
    auto fd = connect_local(name, SocketKind::packets, Deadline::after_ms(50));
    end = fd.status().code();
    if (fd.ok()) waiting.push_back(std::move(fd).value());
  }
  EXPECT_EQ(end, Code::timeout);
}

TEST(LocalSocket, OutOfDescriptorsNamesTheRemedy) {
  ChildProcess child([] {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
    const auto fd = listen_local(random_socket_name(), SocketKind::stream);
    setrlimit(RLIMIT_NOFILE, &before);  // sanitizers open descriptors of their own to look at memory
    EXPECT_FALSE(fd.ok());
    EXPECT_EQ(fd.status().code(), Code::unavailable);
    EXPECT_THAT(std::string(fd.status().text()), HasSubstr("its limit is 3); raise ulimit -n"));
    return true;
  });
  EXPECT_TRUE(child.wait());
}

TEST(Token, DiffersAndCompares) {
  Token one = random_token();
  const Token other = random_token();
  EXPECT_FALSE(equal(one, other));
  EXPECT_TRUE(equal(one, one));
  const Token copy = one;
  one.back() = static_cast<std::uint8_t>(one.back() ^ 1);
  EXPECT_FALSE(equal(one, copy));
  EXPECT_NE(random_socket_name(), random_socket_name());
}

}  // namespace
}  // namespace seto

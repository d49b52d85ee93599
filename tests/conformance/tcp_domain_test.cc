// The sockets of a context's connections, and the kernel's list of events on them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "transports/tcp/link/domain.h"

namespace seto::tcp {
namespace {

// A connection of one socket. `inherited` is a second descriptor of that socket, such as a process has that was started without
// fork handlers (vfork, clone) and has not called exec yet.
struct OneSocket {
  OneSocket() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    peer = Fd(ends[0]);
    inherited = Fd(fcntl(ends[1], F_DUPFD_CLOEXEC, 0));
    setup.sockets.emplace_back(PrivateFd(Fd(ends[1])));
    setup.session = Secret::random();
  }
  Link::Setup setup;
  Fd peer;
  Fd inherited;
};

// The kernel removes a socket from its list when the last descriptor of it is closed. Events of a destroyed connection would
// otherwise reach its freed memory.
TEST(TcpDomain, ADroppedConnectionLeavesNoEvents) {
  const std::unique_ptr<Domain> domain = Domain::create().value();
  OneSocket dropped;
  OneSocket next;
  std::weak_ptr<Link> first = domain->add(std::move(dropped.setup)).value();
  const std::shared_ptr<Link> second = domain->add(std::move(next.setup)).value();
  ASSERT_TRUE(first.expired()) << "it is unused, so the domain drops it";
  ASSERT_EQ(write(dropped.peer.get(), "bytes", 5), 5);
  pollfd events{domain->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&events, 1, 0), 0) << "an event for a destroyed connection";
  domain->hurry(true);
}

}  // namespace
}  // namespace seto::tcp

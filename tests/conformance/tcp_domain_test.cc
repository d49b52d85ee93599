// The sockets of a context's connections, and the kernel's list of events on them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

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

// ---- the limit of a site ----

std::uint64_t pace_of(const Link& link) {
  std::uint64_t pace = 0;
  socklen_t size = sizeof pace;
  EXPECT_EQ(getsockopt(link.descriptor(0), SOL_SOCKET, SO_MAX_PACING_RATE, &pace, &size), 0);
  return pace;
}

// More than the kernel takes while the peer does not read.
void fill(Link& link, const std::vector<std::byte>& bytes) {
  for (int frames = 0; frames < 64; ++frames) {
    Frame frame;
    frame.set_kind(FrameKind::progress);
    frame.length = static_cast<std::uint32_t>(bytes.size());
    link.queue({frame, bytes.data(), nullptr, nullptr});
  }
}

void read_all(const Fd& peer) {
  std::vector<std::byte> bytes(1 << 20);
  while (read(peer.get(), bytes.data(), bytes.size()) > 0) {
  }
}

TEST(TcpDomain, LinksToOtherSitesThatHaveOutputShareTheLimitOfTheSite) {
  constexpr std::uint64_t kLimit = 8'000'000;
  constexpr std::uint64_t kAlone = 7'600'000;  // without headers
  const std::vector<std::byte> bytes(128 << 10);
  const std::unique_ptr<Domain> domain = Domain::create().value();
  OneSocket ends[3];
  std::vector<std::shared_ptr<Link>> links;
  for (OneSocket& end : ends) links.push_back(domain->add(std::move(end.setup)).value());
  const std::uint64_t unlimited = pace_of(*links[2]);
  links[0]->limit_site_pace(2 * kLimit);
  links[0]->limit_site_pace(kLimit);
  links[0]->limit_site_pace(3 * kLimit);
  links[1]->limit_site_pace(kLimit);
  EXPECT_EQ(links[0]->site_pace_limit(), kLimit) << "the smallest counts";
  {
    const std::lock_guard lock(domain->lock());
    fill(*links[0], bytes);
    fill(*links[2], bytes);
  }
  domain->pump();
  EXPECT_EQ(pace_of(*links[0]), kAlone);
  EXPECT_EQ(pace_of(*links[2]), unlimited) << "it stays within the site";
  {
    const std::lock_guard lock(domain->lock());
    fill(*links[1], bytes);
  }
  domain->pump();
  EXPECT_EQ(pace_of(*links[0]), kAlone / 2);
  EXPECT_EQ(pace_of(*links[1]), kAlone / 2);
  const Deadline until = Deadline::after_ms(20'000);
  while (links[0]->unsent() && !until.passed()) {
    read_all(ends[0].peer);
    domain->pump();
  }
  domain->pump();
  EXPECT_EQ(pace_of(*links[1]), kAlone) << "the other link is idle";
  domain->hurry(true);
}

}  // namespace
}  // namespace seto::tcp

// The memory that a link takes before it carries anything. A rank of a large job has many.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

#ifndef SETO_SANITIZED  // a sanitizer fills what it allocates

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

TEST(LinkMemory, StagingIsNotTouchedBeforeItIsUsed) {
  constexpr int kLinks = 300;
  constexpr double kMostBytes = 10'000;  // with 16 KiB of staging 18,000 were touched
  std::vector<Link::Setup> setups(kLinks);
  std::vector<Fd> peers;
  for (Link::Setup& setup : setups) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    peers.emplace_back(ends[0]);
    setup.sockets.emplace_back(PrivateFd(Fd(ends[1])));
    setup.session = Secret::random();
  }
  std::vector<std::unique_ptr<Link>> links;
  const double before = resident_bytes();
  for (Link::Setup& setup : setups) links.push_back(std::make_unique<Link>(std::move(setup)));
  EXPECT_LT((resident_bytes() - before) / kLinks, kMostBytes);
}

#endif

}  // namespace
}  // namespace seto::tcp

// How long unauthenticated connections can delay an init.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "src/base/log.h"
#include "src/net/tcp_socket.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using testing::FarPlace;
using testing::join_and_gather;
using testing::later;
using testing::text_of;

// More silent connections than the server serves at once; each uses a place for a quarter of a second.
TEST(UnauthenticatedTiming, SilentConnectionsDelayAnInitBriefly) {
  FarPlace place;
  LogCapture log;
  std::vector<PrivateFd> loris;
  for (std::size_t count = 0; count < 3 * kRendezvousUnauthenticatedLimit; ++count) {
    auto fd = connect_tcp(place.address(), later());
    ASSERT_TRUE(fd.ok()) << fd.status().text();
    ASSERT_EQ(send(fd->get(), "P", 1, MSG_NOSIGNAL), 1);
    loris.push_back(std::move(fd).value());
  }
  const std::uint64_t start = monotonic_ns();
  const auto answers = as_threads(3, [&](Rank rank) { return join_and_gather(place.far, rank, 3, later()); });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_LT(monotonic_ns() - start, 8'000'000'000U);
}

}  // namespace
}  // namespace seto

#include "transports/rdma/pipes/rail_seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using support::PipePair;
using support::RdmaHost;
using ::testing::HasSubstr;

using Seat = std::unique_ptr<RailSeats::Seat>;

// Links come and go, and each gives up what exceeds its share, as RdmaPipes has it.
TEST(RailSeats, OfManyLinksAreAtMost64OrOneEach) {
  const std::uint64_t seed = testing::chosen_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  RailSeats seats;
  std::array<std::vector<Seat>, 80> links;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<Seat>& link = links[random() % (turn < 10'000 ? 80 : 40)];
    if (random() % 8 == 0)
      link.clear();
    else if (link.empty() || link.size() < seats.share())
      link.push_back(std::make_unique<RailSeats::Seat>(seats, &link));
    if (random() % 4 == 0) (void)seats.raise();
    std::size_t all = 0, in_use = 0;
    for (std::vector<Seat>& one : links) {
      one.resize(std::min<std::size_t>(one.size(), seats.share()));
      ASSERT_EQ(seats.of(&one), one.size());
      all += one.size();
      in_use += one.empty() ? 0 : 1;
    }
    ASSERT_EQ(seats.links(), in_use);
    ASSERT_LE(all, std::max<std::size_t>(RailSeats::kMost, in_use));
  }
}

TEST(RailSeats, RiseAgainOnlyWhenAQuarterOfTheLinksWouldFindRoom) {
  RailSeats seats;
  std::vector<char> links(33);
  std::vector<Seat> taken;
  for (const char& link : links) taken.push_back(std::make_unique<RailSeats::Seat>(seats, &link));
  EXPECT_EQ(seats.share(), 1U);
  taken.resize(32);
  EXPECT_FALSE(seats.raise()) << "a link that breaks comes back";
  taken.resize(24);
  EXPECT_TRUE(seats.raise());
  EXPECT_EQ(seats.share(), 2U);
  taken.clear();
  EXPECT_TRUE(seats.raise());
  EXPECT_EQ(seats.share(), 64U);
}

// Two contexts of four ports each, and links between them.
class RailsOfManyPeers : public ::testing::Test {
 protected:
  static constexpr std::size_t kPorts = 4;

  struct Link {
    std::vector<PipePair> rails;
  };

  RailsOfManyPeers() {
    for (const char end : {'a', 'b'})
      for (std::size_t port = 0; port < kPorts; ++port) {
        const std::string number = std::to_string(port);
        fabric.add_ethernet(end + number, "10." + number + ".0." + (end == 'a' ? "1" : "2"));
      }
  }
  void open(std::uint32_t most_there = RailSeats::kMost) {
    const auto host = [&](const std::string& end, std::uint32_t most) {
      return std::make_unique<RdmaHost>(fabric, std::vector<std::string>{end + "0", end + "1", end + "2", end + "3"},
                                        PipeTerms{.most_queue_pairs = most});
    };
    here = host("a", RailSeats::kMost);
    there = host("b", most_there);
  }
  // The next rail of the link. It has it at both ends.
  void add_rail(Link& link) {
    std::vector<const BytePipe*> beside, beside_other;
    for (const PipePair& rail : link.rails) {
      beside.push_back(rail.first.get());
      beside_other.push_back(rail.second.get());
    }
    link.rails.push_back(support::connect_pipes(
        here->pipes(), there->pipes(), [this] { look(); }, std::move(beside), std::move(beside_other), &link));
    ASSERT_TRUE(link.rails.back().first != nullptr && link.rails.back().second != nullptr);
  }
  // As a link that finds a rail broken.
  static void drop_broken(Link& link) {
    std::erase_if(link.rails, [](const PipePair& rail) { return is_broken(*rail.first) || is_broken(*rail.second); });
  }
  static bool is_broken(BytePipe& pipe) {
    char none[8];
    const iovec room{none, sizeof none};
    return pipe.receive({&room, 1}) == -1 && errno == ECONNRESET;
  }
  void look() {
    fabric.run();
    EXPECT_LE(fabric.queue_pairs("a"), 64U);
    EXPECT_LE(fabric.queue_pairs("b"), 64U);
  }
  void expect_bytes(const PipePair& rail) {
    char sent[] = "over the rail that is left";
    const iovec out{sent, sizeof sent};
    ASSERT_EQ(rail.first->send({&out, 1}), static_cast<ssize_t>(sizeof sent));
    fabric.run();
    there->pipes().poll();
    char got[sizeof sent] = {};
    const iovec in{got, sizeof got};
    ASSERT_EQ(rail.second->receive({&in, 1}), static_cast<ssize_t>(sizeof got));
    EXPECT_STREQ(got, sent);
  }
  FakeFabric fabric{testing::chosen_seed()};
  std::unique_ptr<RdmaHost> here, there;
};

TEST_F(RailsOfManyPeers, TakeFewerWithEachPeerAndGoOn) {
  const LogCapture log;
  set_log_level(LogLevel::info);
  open();
  std::array<Link, 17> links;
  for (std::size_t peer = 0; peer < 16; ++peer)
    while (links[peer].rails.size() < here->pipes().usable()) add_rail(links[peer]);
  EXPECT_EQ(fabric.queue_pairs("a"), 64U);
  EXPECT_FALSE(log.contains("peers of this process"));
  const std::uint64_t changes = there->pipes().changes();
  add_rail(links[16]);
  EXPECT_GT(there->pipes().changes(), changes) << "the peer is told";
  EXPECT_EQ(here->pipes().usable(), 3U);
  EXPECT_EQ(there->pipes().usable(), 3U);
  EXPECT_THAT(links[0].rails[3].first->why(), HasSubstr("17 peers share the RDMA connections of this process"));
  for (Link& link : links) {
    drop_broken(link);
    while (link.rails.size() < here->pipes().usable()) add_rail(link);
    for (const PipePair& rail : link.rails) expect_bytes(rail);
  }
  EXPECT_EQ(fabric.queue_pairs("a"), 17U * 3);
  const auto lines = log.lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.find("17 peers of this process have RDMA connections, 3 each from now on") != line.npos;
                          }),
            2)
      << "each end says it once";
  set_log_level(LogLevel::warn);
  // They end, and the others may have more again.
  for (std::size_t peer = 8; peer < 17; ++peer) links[peer].rails.clear();
  here->pipes().arm();
  there->pipes().arm();
  EXPECT_EQ(here->pipes().usable(), 4U);
  add_rail(links[0]);
  EXPECT_EQ(links[0].rails.size(), 4U);
}

TEST_F(RailsOfManyPeers, RefuseOneMoreThanTheirPart) {
  open(2);
  std::array<Link, 2> links;
  for (Link& link : links) add_rail(link);
  EXPECT_EQ(there->pipes().usable(), 1U);
  EXPECT_EQ(here->pipes().usable(), 4U) << "this end alone";
  const auto refused = there->pipes().begin({PipeMaker::Role::follows, "rank 0", {links[0].rails[0].second.get()}, 0, &links[0]});
  EXPECT_TRUE(refused->advance());
  EXPECT_EQ(refused->take(), nullptr);
  EXPECT_THAT(std::string(refused->why().text()), HasSubstr("2 peers share the RDMA connections of its process"));
  EXPECT_EQ(fabric.queue_pairs("b"), 2U);
  expect_bytes(links[0].rails[0]);
  // One that the link has lost is no obstacle, though it is not closed yet.
  links[1].rails[0].first.reset();
  PipePair lost = std::move(links[1].rails[0]);
  links[1].rails.clear();
  add_rail(links[1]);
  EXPECT_EQ(fabric.queue_pairs("b"), 2U);
  expect_bytes(links[1].rails[0]);
}

}  // namespace
}  // namespace seto::rdma

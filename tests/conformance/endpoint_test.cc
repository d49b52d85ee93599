// Endpoints and connections of every transport that contexts use: what core relies on when it connects ranks.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/control/local/local_connector.h"
#include "src/core/connect/transport_list.h"
#include "tests/support/context_peer_groups.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kWaitMs = 20'000;

// Two contexts of this process with one transport each, and what they announce.
class Endpoints : public ::testing::TestWithParam<std::size_t> {
 protected:
  struct End {
    Config config;
    std::shared_ptr<const Wakeup> wakeup;
    Place place;
    std::unique_ptr<Transport> transport;
    Endpoint* endpoint = nullptr;
    std::string address;
    std::shared_ptr<void> admission;
    Connections made;
  };

  void SetUp() override {
    static ContextId next = 2'000'000;
    for (std::size_t index = 0; index < 2; ++index) {
      End& end = ends_[index];
      end.config.interface = "lo";
      end.wakeup = Wakeup::create().value();
      end.place = {"here", LocalConnector::of_process().value()->address(), next++};
      auto transports = make_transports({end.place.context, &end.config, end.wakeup});
      ASSERT_TRUE(transports.ok()) << transports.status().text();
      end.transport = std::move(transports.value()[GetParam()]);
      const auto endpoint = end.transport->open([] {});
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().text();
      end.endpoint = endpoint.value();
      end.address = end.endpoint->address(end.config);
      end.admission = end.endpoint->admit(key_);
      end.made.resize(2);
    }
    id_ = next++;
  }
  // No end is left to read, so the last one to close waits for no acknowledgement.
  void TearDown() override {
    for (End& end : ends_)
      if (end.transport != nullptr) end.transport->communicator_ended(true);
    for (End& end : ends_) end.made.clear();
  }

  [[nodiscard]] Attempt attempt(std::uint32_t own) const {
    Attempt result;
    result.id = id_;
    result.key = key_;
    result.own = own;
    for (std::uint32_t index = 0; index < 2; ++index)
      result.members.push_back({index, &ends_[index].place, ends_[index].address, {}, index != own});
    return result;
  }
  Status connect(std::uint32_t own, Attempt attempt) {
    return ends_[own].endpoint->connect(attempt, Deadline::after_ms(kWaitMs), ends_[own].made);
  }
  // Both ends at once.
  void connect_both() {
    Status other;
    std::thread thread([&] { other = connect(1, attempt(1)); });
    const Status own = connect(0, attempt(0));
    thread.join();
    ASSERT_TRUE(own.ok()) << own.text();
    ASSERT_TRUE(other.ok()) << other.text();
  }

  const Secret key_ = Secret::random();
  AttemptId id_ = 0;
  End ends_[2];
};

TEST_P(Endpoints, ReachEachOtherAlike) {
  const Transport& transport = *ends_[0].transport;
  const Place elsewhere{"elsewhere", "another process", 7};
  EXPECT_TRUE(transport.reaches(ends_[0].place, ends_[1].place));
  EXPECT_EQ(transport.reaches(ends_[0].place, elsewhere), transport.reaches(elsewhere, ends_[0].place));
  EXPECT_FALSE(std::string(transport.name()).empty());
}

TEST_P(Endpoints, MakeOneConnectionThatTellsWhoIsAtItsOtherEnd) {
  connect_both();
  for (std::uint32_t own = 0; own < 2; ++own) {
    const End& peer = ends_[1 - own];
    EXPECT_EQ(ends_[own].made[own], nullptr) << "no connection to itself";
    const std::shared_ptr<Connection>& connection = ends_[own].made[1 - own];
    ASSERT_NE(connection, nullptr);
    EXPECT_EQ(connection->peer().process, peer.place.process);
    EXPECT_EQ(connection->peer().context, peer.place.context);
    EXPECT_EQ(connection->peer().attempt, id_);
    EXPECT_FALSE(connection->way().empty());
    EXPECT_FALSE(connection->dead());
    EXPECT_FALSE(connection->ended());
  }
  EXPECT_EQ(ends_[0].made[1]->reach(), ends_[1].made[0]->reach());
}

TEST_P(Endpoints, LeaveAConnectionAloneThatIsThere) {
  connect_both();
  const Connection* const first = ends_[0].made[1].get();
  Attempt again = attempt(0);
  again.members[1].wanted = false;
  EXPECT_TRUE(connect(0, again).ok()) << "no member is wanted, so it waits for none";
  EXPECT_EQ(ends_[0].made[1].get(), first);
}

// A context of the same process whose memory is here already needs no other end, so that nothing can be declined.
TEST_P(Endpoints, TellAWaitingPeerWhyTheyDecline) {
  Status waited;
  std::thread waiting([&] { waited = connect(0, attempt(0)); });
  ends_[1].endpoint->decline(attempt(1), {Code::unavailable, "rank 1 could not connect: it has no memory"});
  waiting.join();
  if (waited.ok()) {
    ASSERT_NE(ends_[0].made[1], nullptr);
    EXPECT_EQ(ends_[0].made[1]->reach(), Reach::process);
    return;
  }
  EXPECT_EQ(waited.code(), Code::aborted) << waited.text();
  EXPECT_EQ(waited.text(), "rank 1 could not connect: it has no memory");
}

std::vector<std::size_t> all_transports() {
  std::vector<std::size_t> indices(context_transports().size());
  for (std::size_t index = 0; index < indices.size(); ++index) indices[index] = index;
  return indices;
}

INSTANTIATE_TEST_SUITE_P(All, Endpoints, ::testing::ValuesIn(all_transports()),
                         [](const auto& one) { return context_transports()[one.param]->name(); });

}  // namespace
}  // namespace seto::support

#include "src/core/connect/rank_announcement.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "transports/peer_closed.h"

namespace seto::testing {
namespace {

RankAnnouncement sample() {
  RankAnnouncement one;
  one.place = {"host", std::string("pro\0cess", 8), 7};  // an address is bytes and may contain zeros
  one.site = "site";
  one.found_site = "1234 5";
  one.seat = std::string("\0seat", 5);
  one.nonce = std::numeric_limits<std::uint64_t>::max();
  one.cores = 3;
  one.machine = 99;
  one.machine_cores = 12;
  one.bound = "00000107";
  one.uplink_mbit = 250;
  one.downlink_mbit = 1000;
  one.pacing_mbit = 200;
  one.connect = 2;
  one.topology = 0xfedcba9876543210;
  one.file_host = 3;
  one.outcome = "\x05it failed";
  return one;
}

void expect_same(const RankAnnouncement& one, const RankAnnouncement& other) {
  EXPECT_EQ(one.place.host, other.place.host);
  EXPECT_EQ(one.place.process, other.place.process);
  EXPECT_EQ(one.place.context, other.place.context);
  EXPECT_EQ(one.site, other.site);
  EXPECT_EQ(one.found_site, other.found_site);
  EXPECT_EQ(one.seat, other.seat);
  EXPECT_EQ(one.nonce, other.nonce);
  EXPECT_EQ(one.cores, other.cores);
  EXPECT_EQ(one.machine, other.machine);
  EXPECT_EQ(one.machine_cores, other.machine_cores);
  EXPECT_EQ(one.bound, other.bound);
  EXPECT_EQ(one.uplink_mbit, other.uplink_mbit);
  EXPECT_EQ(one.downlink_mbit, other.downlink_mbit);
  EXPECT_EQ(one.pacing_mbit, other.pacing_mbit);
  EXPECT_EQ(one.connect, other.connect);
  EXPECT_EQ(one.topology, other.topology);
  EXPECT_EQ(one.file_host, other.file_host);
  EXPECT_EQ(one.outcome, other.outcome);
  EXPECT_EQ(one.offered, other.offered);
}

TEST(RankAnnouncement, IsDecodedUnchanged) {
  RankAnnouncement one = sample();
  for (const Attempts& offered :
       {Attempts{}, Attempts{0}, Attempts{1, 256, std::numeric_limits<AttemptId>::max()}, Attempts(kOffersLimit, 12)}) {
    one.offered = offered;
    Result<RankAnnouncement> other = RankAnnouncement::decoded(one.encoded());
    ASSERT_TRUE(other.ok()) << other.status().text();
    expect_same(one, other.value());
  }
}

TEST(RankAnnouncement, TopologyFilesMustHaveEqualContent) {
  std::vector<RankAnnouncement> all(3, sample());
  EXPECT_TRUE(same_topology(all).ok());
  all[2].topology = 0x12;
  EXPECT_EQ(std::string(same_topology(all).text()),
            "SETO_TOPOLOGY_FILE is a file with digest fedcba9876543210 on rank 0 and a file with digest 0000000000000012 on rank "
            "2: all "
            "ranks need a file of the same content, or none");
  all[1].topology = 0;
  EXPECT_NE(same_topology(all).text().find("on rank 0 and no file on rank 1"), std::string::npos);
}

TEST(RankAnnouncement, ATruncatedOneIsRejected) {
  RankAnnouncement one = sample();
  one.offered = {1, 2, 3};
  const std::string whole = one.encoded();
  for (std::size_t length = 0; length < whole.size() - one.place.process.size(); ++length)
    EXPECT_FALSE(RankAnnouncement::decoded(whole.substr(0, length)).ok()) << length << " bytes";
}

TEST(RankAnnouncement, OneWithTooManyOffersIsRejected) {
  RankAnnouncement one = sample();
  one.offered.assign(kOffersLimit + 1, 12);
  const Result<RankAnnouncement> other = RankAnnouncement::decoded(one.encoded());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("8200 bytes"), std::string::npos) << other.status().text();
}

TEST(FinalAnnouncement, ArrivesAsItWasSaidOrIsRefused) {
  const FinalAnnouncement one{"\x05it failed", {0, 60'000, 4'294'967'295}};
  const std::string whole = one.encoded();
  const auto other = FinalAnnouncement::decoded(whole);
  ASSERT_TRUE(other.ok()) << other.status().text();
  EXPECT_EQ(other.value().outcome, one.outcome);
  EXPECT_EQ(other.value().round_trips_us, one.round_trips_us);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(FinalAnnouncement::decoded(whole.substr(0, length)).ok()) << length << " bytes";
}

TEST(EndpointAnnouncement, ArrivesAsItWasSaidOrIsRefused) {
  EndpointAnnouncement one;
  one.transports = {{"", std::string("\0seat", 5)}, {std::string("\0address", 8), ""}};
  one.secret = std::string(Secret::kSize, 's');
  one.secret_check = std::string(Secret::kSize, 'c');
  one.outcome = "\x05it failed";
  const std::string whole = one.encoded();
  const auto other = EndpointAnnouncement::decoded(whole, 2);
  ASSERT_TRUE(other.ok()) << other.status().text();
  for (std::size_t index = 0; index < 2; ++index) {
    EXPECT_EQ(other.value().transports[index].address, one.transports[index].address);
    EXPECT_EQ(other.value().transports[index].seat, one.transports[index].seat);
  }
  EXPECT_EQ(other.value().secret, one.secret);
  EXPECT_EQ(other.value().secret_check, one.secret_check);
  EXPECT_EQ(other.value().outcome, one.outcome);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(EndpointAnnouncement::decoded(whole.substr(0, length), 2).ok()) << length << " bytes";
  EXPECT_FALSE(EndpointAnnouncement::decoded(whole, 1).ok()) << "another list of transports";
  one.secret.pop_back();
  EXPECT_FALSE(EndpointAnnouncement::decoded(one.encoded(), 2).ok()) << "a secret of another length";
  one.secret.clear();
  one.secret_check.pop_back();
  EXPECT_FALSE(EndpointAnnouncement::decoded(one.encoded(), 2).ok()) << "a check of another length";
}

RankAnnouncement at(const std::string& host, int cores, std::uint64_t machine, int machine_cores) {
  RankAnnouncement one;
  one.place.host = host;
  one.cores = cores;
  one.machine = machine;
  one.machine_cores = machine_cores;
  return one;
}

TEST(RanksPerCore, CountTheHostOrTheWholeMachine) {
  const std::vector<RankAnnouncement> apart = {at("a", 2, 1, 4), at("b", 2, 1, 4), at("c", 2, 2, 4), at("c", 2, 2, 4)};
  EXPECT_EQ(most_ranks_per_core(apart), 1);
  const std::vector<RankAnnouncement> no_memory_shared = {at("a", 2, 1, 2), at("b", 2, 1, 2), at("c", 2, 1, 2), at("d", 8, 2, 8)};
  EXPECT_EQ(ranks_per_core_at(no_memory_shared[0], no_memory_shared), 1.5);
  EXPECT_EQ(ranks_per_core_at(no_memory_shared[3], no_memory_shared), 1);
  EXPECT_EQ(most_ranks_per_core(no_memory_shared), 1.5);
  const std::vector<RankAnnouncement> bound = {at("a", 1, 1, 8), at("a", 1, 1, 8), at("a", 2, 1, 8)};
  EXPECT_EQ(most_ranks_per_core(bound), 3) << "the rank that may use the fewest cores";
  const std::vector<RankAnnouncement> unknown = {at("a", 1, 0, 1), at("b", 1, 0, 1)};
  EXPECT_EQ(most_ranks_per_core(unknown), 1);
}

RankAnnouncement bound_to(std::initializer_list<std::size_t> cores) {
  CoreSet set;
  for (const std::size_t core : cores) set.add(core);
  RankAnnouncement one = at("a", static_cast<int>(cores.size()), 1, 8);
  one.bound = set.text();
  return one;
}

// Launchers of MPI bind two ranks to a core each.
TEST(RanksPerCore, LeaveOutRanksThatAreBoundToOtherCores) {
  EXPECT_EQ(most_ranks_per_core({bound_to({0}), bound_to({1})}), 1);
  EXPECT_EQ(most_ranks_per_core({bound_to({0}), bound_to({0})}), 2);
  EXPECT_EQ(most_ranks_per_core({bound_to({0, 1}), bound_to({0, 1}), bound_to({0, 1}), bound_to({2})}), 1.5);
  const std::vector<RankAnnouncement> some_shared = {bound_to({0}), bound_to({0, 1}), bound_to({64})};
  EXPECT_EQ(ranks_per_core_at(some_shared[0], some_shared), 1.5);
  EXPECT_EQ(ranks_per_core_at(some_shared[1], some_shared), 1);
  EXPECT_EQ(ranks_per_core_at(some_shared[2], some_shared), 1);
  const std::vector<RankAnnouncement> one_is_free = {bound_to({0}), at("a", 8, 1, 8)};
  EXPECT_EQ(ranks_per_core_at(one_is_free[0], one_is_free), 1.125);
}

TEST(CoresOfThread, AreStatedIfTheyAreNotAll) {
  std::thread([] {
    const CoreSet all = CoreSet::of_thread();
    RankAnnouncement free;
    free.machine_cores = static_cast<int>(all.count());
    free.take_cores(all);
    EXPECT_EQ(free.cores, free.machine_cores);
    EXPECT_EQ(free.bound, "");
    cpu_set_t one;
    CPU_ZERO(&one);
    std::size_t first = 0;
    while (!all.contains(first)) ++first;
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    RankAnnouncement bound;
    bound.machine_cores = 2;
    bound.take_cores(CoreSet::of_thread());
    EXPECT_EQ(bound.cores, 1);
    CoreSet expected;
    expected.add(first);
    EXPECT_EQ(bound.bound, expected.text());
  }).join();
}

TEST(RankAnnouncement, WithoutASetOfCoresIsRejected) {
  RankAnnouncement one = sample();
  for (const char* const bound : {"x", "0", "00000001 00000001"}) {
    one.bound = bound;
    EXPECT_FALSE(RankAnnouncement::decoded(one.encoded()).ok()) << bound;
  }
}

TEST(SeveralMachines, AreToldByTheirNumbersAndAnUnknownOneCounts) {
  EXPECT_FALSE(on_several_machines({at("a", 2, 1, 4), at("b", 2, 1, 4)}));
  EXPECT_TRUE(on_several_machines({at("a", 2, 1, 4), at("b", 2, 2, 4)}));
  EXPECT_TRUE(on_several_machines({at("a", 2, 0, 4), at("a", 2, 0, 4)}));
}

// A peer that has failed closes its connections, which ranks of lower numbers may see before they hear why it failed.
TEST(CommonOutcome, IsTheFailureThatIsNearestToTheCause) {
  const Status closed(Code::remote_error, std::string("rank 2: ") + kPeerClosed + ": Broken pipe");
  const Status refused(Code::remote_error, "rank 1: the peer's certificate is signed by CN=wrong CA");
  const Status late(Code::timeout, "no answer");
  const auto text_of = [&](const std::vector<Status>& made) {
    std::vector<std::string> outcomes;
    for (const Status& one : made) outcomes.push_back(outcome_text(one));
    return std::string(common_outcome(0, made[0], outcomes).text());
  };
  EXPECT_EQ(text_of({closed, Status(), refused}),
            "rank 2 could not connect: rank 1: the peer's certificate is signed by CN=wrong CA");
  EXPECT_EQ(text_of({late, closed, late}), "rank 1 could not connect: rank 2: its process closed a new connection: Broken pipe");
  EXPECT_EQ(text_of({Status(), late, Status()}), "rank 1 could not connect: no answer");
  EXPECT_EQ(text_of({Status(), Status()}), "");
}

}  // namespace
}  // namespace seto::testing

#include "src/core/choice/peer_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "src/core/choice/planner.h"
#include "transports/rdma/pipes/rail_seats.h"

namespace seto {
namespace {

// Each host has `on_a_host` ranks, except that the first one has one more if they are uneven.
Tiers tiers_of(int hosts, int on_a_host, int sites, bool even = true) {
  std::vector<Home> homes;
  for (int host = 0; host < hosts; ++host)
    for (int rank = 0; rank < on_a_host + (!even && host == 0 ? 1 : 0); ++rank)
      homes.push_back({static_cast<std::uint32_t>(host), static_cast<std::uint32_t>(host % sites)});
  return Tiers::of(homes);
}

Question question_on(Collective collective, const Tiers& tiers, std::uint64_t bytes) {
  Question question;
  question.collective = collective;
  question.ranks = tiers.ranks();
  question.bytes = std::max<std::uint64_t>(4, has_parts(collective) ? bytes / static_cast<std::uint64_t>(tiers.ranks()) : bytes);
  return question;
}

const Candidate& candidate_of(const Choice& choice, std::string_view name) {
  return *std::find_if(choice.candidates.begin(), choice.candidates.end(),
                       [&](const Candidate& one) { return one.algorithm->name == name && one.coded_tiers == 0; });
}

double peers_of_chosen(const Choice& choice) { return candidate_of(choice, choice.algorithm->name).peers; }

// The fastest of all that can run, but for those that exist to keep the budget.
std::string_view fastest(const Choice& choice) {
  const Candidate* best = nullptr;
  for (const Candidate& one : choice.candidates)
    if (one.has_estimate() && !one.saves_peers && (best == nullptr || one.estimate.seconds < best->estimate.seconds)) best = &one;
  return best->algorithm->name;
}

constexpr std::uint64_t kSizes[] = {8, 2 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30};

// Calls check(question, tiers, choice) for every collective and size on these tiers.
template <class Check>
void for_each_choice(const Tiers& tiers, double crowding, Check check) {
  for (int value = 0; value < kCollectiveCount; ++value)
    for (const std::uint64_t bytes : kSizes) {
      Question question = question_on(static_cast<Collective>(value), tiers, bytes);
      question.crowding = crowding;
      SCOPED_TRACE(std::string(name_of(question.collective)) + " of " + std::to_string(bytes) + " bytes, " +
                   std::to_string(tiers.ranks()) + " ranks, " + std::to_string(tiers.count()) + " tiers");
      const Result<Choice> choice = choose(question, tiers, {});
      ASSERT_TRUE(choice.ok()) << choice.status().text();
      check(question, choice.value());
    }
}

TEST(PeerBudget, JobsOfUpTo33HostsChooseTheFastestWithoutIt) {
  for (const int hosts : {1, 2, 3, 8, 17, 33})
    for (const int on_a_host : {1, 2, 8})
      for (const int sites : {1, 2, 3})
        for (const bool even : {true, false}) {
          if (sites > hosts || hosts * on_a_host < 2) continue;
          for_each_choice(tiers_of(hosts, on_a_host, sites, even), on_a_host, [](const Question&, const Choice& choice) {
            EXPECT_EQ(choice.algorithm->name, fastest(choice));
            for (const Candidate& one : choice.candidates) EXPECT_EQ(one.left_out, one.saves_peers && one.has_estimate());
          });
        }
}

TEST(PeerBudget, LargerJobsKeepItWhereverAPlanCan) {
  for (const int hosts : {34, 128, 1000})
    for (const int on_a_host : {1, 8})
      for (const int sites : {1, 2})
        for_each_choice(tiers_of(hosts, on_a_host, sites), 1, [](const Question& question, const Choice& choice) {
          const Collective what = question.collective;
          const bool needs_all = what == Collective::all_to_all || what == Collective::gather || what == Collective::scatter;
          const bool can_be_kept = std::any_of(choice.candidates.begin(), choice.candidates.end(), [](const Candidate& one) {
            return one.refused.empty() && one.peers <= kMostPeers;
          });
          EXPECT_TRUE(needs_all || can_be_kept);
          if (!can_be_kept) {
            EXPECT_EQ(choice.algorithm->name, fastest(choice));
          } else {
            EXPECT_LE(peers_of_chosen(choice), kMostPeers);
          }
        });
}

// With rails over four ports. Each of the peers of the busiest rank has its first rail, and then as many as its share.
TEST(PeerBudget, KeepsTheQueuePairsOfTenThousandRanksTo64) {
  const auto queue_pairs_of = [](std::size_t peers) {
    constexpr std::uint32_t kPorts = 4;
    rdma::RailSeats seats;
    const std::vector<char> links(peers);
    std::vector<std::unique_ptr<rdma::RailSeats::Seat>> first;
    for (const char& link : links) first.push_back(std::make_unique<rdma::RailSeats::Seat>(seats, &link));
    return peers * std::min(kPorts, seats.share());
  };
  std::size_t most = 0;
  for (const auto& [hosts, on_a_host, sites] : {std::array{1250, 8, 1}, std::array{1250, 8, 4}, std::array{10'000, 1, 1}})
    for_each_choice(tiers_of(hosts, on_a_host, sites), 1, [&](const Question& question, const Choice& choice) {
      const Collective what = question.collective;
      if (what == Collective::all_to_all || what == Collective::gather || what == Collective::scatter) return;  // with all ranks
      const std::size_t pairs = queue_pairs_of(static_cast<std::size_t>(peers_of_chosen(choice)));
      EXPECT_LE(pairs, 64U) << choice.algorithm->name;
      most = std::max(most, pairs);
    });
  EXPECT_GT(most, 32U) << "more than one rail is there";
}

TEST(PeerBudget, SumsOfManyHostsGoRoundThem) {
  const Tiers tiers = tiers_of(128, 8, 1);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    const Choice choice = choose(question_on(collective, tiers, 256 << 20), tiers, {}).value();
    EXPECT_EQ(choice.algorithm->name, "host_ring") << name_of(collective);
    EXPECT_EQ(peers_of_chosen(choice), 2);
    const Candidate& direct = candidate_of(choice, "hierarchical");
    EXPECT_EQ(direct.refused, "needs 127 peers on other hosts, more than 32");
    EXPECT_TRUE(direct.left_out);
    EXPECT_FALSE(direct.can_run());
  }
}

TEST(PeerBudget, BeginsAt34Hosts) {
  for (const int hosts : {33, 34}) {
    const Tiers tiers = tiers_of(hosts, 8, 1);
    const Choice choice = choose(question_on(Collective::all_reduce, tiers, 64 << 20), tiers, {}).value();
    EXPECT_EQ(choice.algorithm->name, hosts == 33 ? "hierarchical" : "host_ring");
    EXPECT_EQ(candidate_of(choice, hosts == 33 ? "host_ring" : "hierarchical").refused,
              hosts == 33 ? "it has few peers, for jobs of more than 33 hosts" : "needs 33 peers on other hosts, more than 32");
  }
}

TEST(PeerBudget, APinOverridesIt) {
  const Tiers many = tiers_of(128, 8, 1);
  Question question = question_on(Collective::all_reduce, many, 64 << 20);
  question.pin = "hierarchical";
  Choice choice = choose(question, many, {}).value();
  EXPECT_EQ(choice.algorithm->name, "hierarchical");
  EXPECT_EQ(candidate_of(choice, "host_ring").refused, "hierarchical is pinned");
  question.pin = "recursive_doubling";
  choice = choose(question, many, {}).value();
  EXPECT_EQ(choice.algorithm->name, "recursive_doubling");
  EXPECT_EQ(cost_of_pin(question, choice)->best->algorithm->name, "host_ring") << "what would be chosen without the pin";
  const Tiers few = tiers_of(4, 2, 1);
  question = question_on(Collective::all_reduce, few, 64 << 20);
  question.pin = "host_ring";
  EXPECT_EQ(choose(question, few, {}).value().algorithm->name, "host_ring");
}

}  // namespace
}  // namespace seto

// The knowledge of a rank about the other ranks of its communicator.

#include "src/core/communicator/members.h"

#include <gtest/gtest.h>

#include "tests/unit/core/scripted_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 4;

class MembersOfFour : public ::testing::Test {
 protected:
  ScriptedRanks ranks_{kRanks};
  Members members_{ranks_.connected()};
};

TEST_F(MembersOfFour, ThisRankIsNeverDead) {
  EXPECT_EQ(members_.connection_to(0), nullptr);
  EXPECT_FALSE(members_.is_dead(0));
  ranks_.connection[2]->is_dead = true;
  EXPECT_TRUE(members_.is_dead(2));
  EXPECT_FALSE(members_.is_dead(1));
}

TEST_F(MembersOfFour, AllHaveCompletedWhenTheSlowestOtherRankHas) {
  for (Rank rank = 1; rank < kRanks; ++rank) ranks_.rank(rank).completed = 5;
  EXPECT_TRUE(members_.all_have_completed(5)) << "what this rank has completed does not count";
  EXPECT_FALSE(members_.all_have_completed(6));
  ranks_.rank(3).completed = 4;
  EXPECT_FALSE(members_.all_have_completed(5));
  EXPECT_TRUE(members_.all_have_completed(4));
}

// No rank waits for one that can never answer.
TEST_F(MembersOfFour, ThoseThatHaveLeftOrDiedAreNotWaitedFor) {
  ranks_.rank(1).completed = ranks_.rank(2).completed = 9;
  EXPECT_FALSE(members_.all_have_completed(9));
  ranks_.rank(3).fate = fate(Code::invalid_usage, 3);
  EXPECT_TRUE(members_.all_have_completed(9)) << "has left";
  ranks_.rank(3).fate = {};
  ranks_.connection[3]->is_dead = true;
  EXPECT_TRUE(members_.all_have_completed(9)) << "has died";
}

TEST_F(MembersOfFour, ALossIsTheRanksOwnWordsBeforeAllElse) {
  EXPECT_TRUE(members_.loss_of(2).ok());
  ranks_.connection[2]->is_dead = true;
  EXPECT_EQ(members_.loss_of(2).text(), "rank 2 (host-2:17): its process has ended");
  ranks_.rank(2).fate = fate(Code::remote_error, 3);
  EXPECT_EQ(members_.loss_of(2).text(), "rank 2 has left the communicator because of rank 3");
  ranks_.rank(2).explanation = "operation 7 (barrier): rank 3 (host-3:17): its process has ended";
  EXPECT_EQ(members_.loss_of(2).text(), "operation 7 (barrier): rank 3 (host-3:17): its process has ended");
  EXPECT_EQ(members_.loss_of(2).code(), Code::remote_error);
}

TEST_F(MembersOfFour, ARankThatLeftByItselfBlamesNoOther) {
  ranks_.rank(1).fate = fate(Code::invalid_usage, 1);
  EXPECT_EQ(members_.loss_of(1).text(), "rank 1 has left the communicator");
  EXPECT_EQ(members_.blamed_by(1), 1);
}

// The numbers of a fate come from another process.
TEST_F(MembersOfFour, AFateThatBlamesNoRankBlamesTheOneThatLeft) {
  for (const Rank no_rank : {kRanks, -1, 70'000}) {
    ranks_.rank(1).fate = fate(Code::remote_error, no_rank);
    EXPECT_EQ(members_.blamed_by(1), 1) << no_rank;
    EXPECT_EQ(members_.loss_of(1).text(), "rank 1 has left the communicator") << no_rank;
  }
  ranks_.rank(1).fate = fate(Code::remote_error, kRanks - 1);
  EXPECT_EQ(members_.blamed_by(1), kRanks - 1);
}

// A rank that failed or gave up has taken back what it sent; one that left well has not.
TEST_F(MembersOfFour, DataMayArriveFromTheLivingAndFromThoseThatLeftWell) {
  ranks_.rank(1).silent = false;
  EXPECT_TRUE(members_.data_may_arrive_from(1));
  ranks_.rank(1).fate = fate(Code::invalid_usage, 1);
  EXPECT_TRUE(members_.data_may_arrive_from(1));
  ranks_.rank(1).fate = fate(Code::timeout, 1);
  EXPECT_FALSE(members_.data_may_arrive_from(1));
  ranks_.rank(1).fate = {};
  ranks_.rank(1).silent = true;
  EXPECT_FALSE(members_.data_may_arrive_from(1)) << "all has arrived";
}

TEST_F(MembersOfFour, OnlyRanksOverANetworkAreSuspected) {
  ranks_.group->suspicious = true;
  EXPECT_TRUE(members_.suspects());
  ConnectedRanks of_one_host = ranks_.connected();
  of_one_host.over_network = false;
  EXPECT_FALSE(Members(std::move(of_one_host)).suspects()) << "their notes are never late";
}

TEST(MembersByReach, AreCountedWithoutThisRank) {
  ScriptedRanks ranks(6);
  const Reach reach[] = {Reach::process, Reach::process, Reach::process, Reach::host, Reach::network, Reach::network};
  for (std::size_t rank = 1; rank < 6; ++rank)
    ranks.connection[rank] = std::make_shared<ScriptedConnection>(PeerContext{"p", rank, 1}, reach[rank]);
  const Members members(ranks.connected());
  EXPECT_EQ(members.others_of_process(), 2);
  EXPECT_EQ(members.others_over_network(), 2);
}

}  // namespace
}  // namespace seto::testing

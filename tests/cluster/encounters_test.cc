// Which processes of a machine must be met, and by whose contexts.

#include "src/core/encounters.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/core/party.h"

namespace seto {
namespace {

constexpr AttemptId kNow = 100;

Introduction rank(const std::string& host, const std::string& process, ContextId context, Attempts offered = {}) {
  Introduction one;
  one.host = host;
  one.process = process;
  one.context = context;
  one.offered = std::move(offered);
  return one;
}

using Contexts = std::vector<ContextId>;

TEST(Encounters, AreOnesOfTheMachineInTheOrderOfFirstRanks) {
  const std::vector<Introduction> all = {rank("h", "c", 1), rank("h", "b", 1), rank("h", "c", 2),
                                         rank("h", "a", 5), rank("g", "d", 1), rank("h", "b", 3)};
  const auto of_c = encounters(all, all[2], kNow);
  ASSERT_EQ(of_c.size(), 2U);
  EXPECT_EQ(of_c[0].own.process, "c");
  EXPECT_EQ(of_c[0].theirs.process, "b");
  EXPECT_EQ(of_c[0].own.contexts, (Contexts{1, 2}));
  EXPECT_EQ(of_c[0].theirs.contexts, (Contexts{1, 3}));
  EXPECT_EQ(of_c[0].attempt, kNow);
  EXPECT_EQ(of_c[1].theirs.process, "a");
  EXPECT_EQ(of_c[1].theirs.contexts, (Contexts{5}));
  EXPECT_TRUE(encounters(all, all[4], kNow).empty()) << "alone on its machine";
}

TEST(Encounters, AreOfThoseWhoLackAConnectionAndBothSidesSeeTheSame) {
  const std::vector<Introduction> all = {rank("h", "a", 1, {7, 9}), rank("h", "a", 2, {9}), rank("h", "b", 1, {8, 9}),
                                         rank("h", "b", 2, {7}), rank("h", "b", 3)};
  const auto of_a = encounters(all, all[0], kNow);
  const auto of_b = encounters(all, all[4], kNow);
  ASSERT_EQ(of_a.size(), 1U);
  ASSERT_EQ(of_b.size(), 1U);
  EXPECT_EQ(of_a[0].own.contexts, (Contexts{1, 2}));
  EXPECT_EQ(of_a[0].theirs.contexts, (Contexts{2, 3})) << "the first of b knows both";
  EXPECT_EQ(of_a[0].own.contexts, of_b[0].theirs.contexts);
  EXPECT_EQ(of_a[0].theirs.contexts, of_b[0].own.contexts);
  const std::vector<Introduction> friends = {all[0], all[2]};
  EXPECT_TRUE(encounters(friends, friends[0], kNow).empty());
}

TEST(Party, IsOneForAllWhoNameTheAttempt) {
  const Deadline until = Deadline::after_ms(30'000);
  const auto first = Party::of_process(1, 2, until);
  EXPECT_NE(Party::of_process(2, 2, until), first);
  EXPECT_EQ(Party::of_process(1, 2, until), first);
  EXPECT_NE(Party::of_process(1, 2, until), first) << "all guests had come";
}

TEST(Party, IsForgottenOnceItsTimeIsUp) {
  const std::weak_ptr<Party> late = Party::of_process(3, 2, Deadline::after_ms(0));
  EXPECT_FALSE(late.expired()) << "a guest may still come";
  (void)Party::of_process(4, 2, Deadline::after_ms(0));
  EXPECT_TRUE(late.expired());
}

TEST(Party, BringsWhatItHasOrWhyNot) {
  const Deadline until = Deadline::after_ms(30'000);
  Party party;
  std::thread host([&] { party.bring("b", failure(Code::remote_error, "its process has ended")); });
  const auto heard = party.connection_to({"b", 1, kNow}, until);
  host.join();
  EXPECT_EQ(heard.status().code(), Code::remote_error);
  EXPECT_EQ(heard.status().text(), "its process has ended");
  party.bring("c", Connections{});
  EXPECT_FALSE(party.connection_to({"c", 1, kNow}, until).ok()) << "a context of which nothing was said";
  const auto never = party.connection_to({"d", 1, kNow}, Deadline::after_ms(20));
  EXPECT_EQ(never.status().code(), Code::timeout);
}

}  // namespace
}  // namespace seto

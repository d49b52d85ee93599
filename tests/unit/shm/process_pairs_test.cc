// The processes of a host that need a handshake, and the contexts that it connects.

#include "transports/shm/process_pairs.h"

#include <gtest/gtest.h>

#include <thread>

#include "transports/shm/process_setup.h"

namespace seto {
namespace {

constexpr AttemptId kNow = 100;

using Held = std::vector<AttemptId>;

struct Member {
  Place place;
  Held held;
};

Member member(const std::string& host, const std::string& process, ContextId context, Held held = {}) {
  return {{host, process, context}, std::move(held)};
}

std::vector<LocalProcess::Pair> pairs_of(const std::vector<Member>& members, std::uint32_t own) {
  Attempt attempt;
  attempt.id = kNow;
  attempt.own = own;
  for (const Member& one : members) {
    AttemptMember& added = attempt.members.emplace_back();
    added.place = &one.place;
    added.held = one.held;
  }
  return process_pairs(attempt);
}

using Contexts = std::vector<ContextId>;

TEST(ProcessPairs, CoverTheHostInTheOrderOfFirstRanks) {
  const std::vector<Member> all = {member("h", "c", 1), member("h", "b", 1), member("h", "c", 2),
                                   member("h", "a", 5), member("g", "d", 1), member("h", "b", 3)};
  const auto of_c = pairs_of(all, 2);
  ASSERT_EQ(of_c.size(), 2U);
  EXPECT_EQ(of_c[0].own.process, "c");
  EXPECT_EQ(of_c[0].theirs.process, "b");
  EXPECT_EQ(of_c[0].own.contexts, (Contexts{1, 2}));
  EXPECT_EQ(of_c[0].theirs.contexts, (Contexts{1, 3}));
  EXPECT_EQ(of_c[0].attempt, kNow);
  EXPECT_EQ(of_c[1].theirs.process, "a");
  EXPECT_EQ(of_c[1].theirs.contexts, (Contexts{5}));
  EXPECT_TRUE(pairs_of(all, 4).empty()) << "alone on its host";
}

TEST(ProcessPairs, HoldTheSameUnconnectedContextsOnBothSides) {
  const std::vector<Member> all = {member("h", "a", 1, {7, 9}), member("h", "a", 2, {9}), member("h", "b", 1, {8, 9}),
                                   member("h", "b", 2, {7}), member("h", "b", 3)};
  const auto of_a = pairs_of(all, 0);
  const auto of_b = pairs_of(all, 4);
  ASSERT_EQ(of_a.size(), 1U);
  ASSERT_EQ(of_b.size(), 1U);
  EXPECT_EQ(of_a[0].own.contexts, (Contexts{1, 2}));
  EXPECT_EQ(of_a[0].theirs.contexts, (Contexts{2, 3})) << "the first context of b knows both";
  EXPECT_EQ(of_a[0].own.contexts, of_b[0].theirs.contexts);
  EXPECT_EQ(of_a[0].theirs.contexts, of_b[0].own.contexts);
  const std::vector<Member> friends = {all[0], all[2]};
  EXPECT_TRUE(pairs_of(friends, 0).empty());
}

TEST(ProcessSetup, IsOneObjectForAllContextsOfTheAttempt) {
  const Deadline until = Deadline::after_ms(30'000);
  const auto first = ProcessSetup::of_process(1, 2, until);
  EXPECT_NE(ProcessSetup::of_process(2, 2, until), first);
  EXPECT_EQ(ProcessSetup::of_process(1, 2, until), first);
  EXPECT_NE(ProcessSetup::of_process(1, 2, until), first) << "all contexts had asked";
}

TEST(ProcessSetup, IsDroppedAfterItsDeadline) {
  const std::weak_ptr<ProcessSetup> late = ProcessSetup::of_process(3, 2, Deadline::after_ms(0));
  EXPECT_FALSE(late.expired()) << "another context may still ask";
  (void)ProcessSetup::of_process(4, 2, Deadline::after_ms(0));
  EXPECT_TRUE(late.expired());
}

TEST(ProcessSetup, ReturnsConnectionsOrTheFailure) {
  const Deadline until = Deadline::after_ms(30'000);
  ProcessSetup process_setup;
  std::thread publisher([&] { process_setup.publish("b", failure(Code::remote_error, "its process has ended")); });
  const auto failed = process_setup.connection_to({"b", 1, kNow}, until);
  publisher.join();
  EXPECT_EQ(failed.status().code(), Code::remote_error);
  EXPECT_EQ(failed.status().text(), "its process has ended");
  process_setup.publish("c", ShmConnections{});
  EXPECT_FALSE(process_setup.connection_to({"c", 1, kNow}, until).ok()) << "no memory was sent for this context";
  const auto never = process_setup.connection_to({"d", 1, kNow}, Deadline::after_ms(20));
  EXPECT_EQ(never.status().code(), Code::timeout);
}

}  // namespace
}  // namespace seto

#include "transports/rdma/connect/channel_set_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/rdma/set_up_ends.h"

namespace seto::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(SetUp, TakesTheFirstPathThatCarriesAMessage) {
  open();
  begin();
  run();
  EXPECT_EQ(messages, 5);
  EXPECT_THAT(ends[0]->failed(), SizeIs(0));
  expect_channel("a0", "b0");
}

TEST_F(SetUp, TakesTheNextOneIfTheFirstCarriesNothing) {
  fabric.separate("a0", "b0");
  open();
  begin();
  run();
  ASSERT_THAT(ends[0]->failed(), SizeIs(1));
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("a0 port 1, GID 3 (10.0.0.1)"));
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("no answer from the peer's device"));
  expect_channel("a1", "b1");
}

TEST_F(SetUp, WaitsForAProbeOnlySoLong) {
  open({"a0"}, {"b0"});
  begin();
  for (int rounds = 0; rounds < 10; ++rounds) {  // the fabric stands still
    pass_messages();
    EXPECT_FALSE(ends[0]->advance());
  }
  for (int rounds = 0; rounds < 100 && !ends[0]->advance(); ++rounds) {
    now_ns += 2'000'000'000;
    pass_messages();
  }
  pass_messages();
  expect_none("no message came through");
}

TEST_F(SetUp, EndsAtBothIfNoPathWorks) {
  for (const char* const here : {"a0", "a1"})
    for (const char* const there : {"b0", "b1"}) fabric.separate(here, there);
  open();
  begin();
  run();
  expect_none("no RDMA path to rank 1 works: [a0 port 1, GID 3");
  EXPECT_THAT(ends[0]->failed(), SizeIs(8));
}

TEST_F(SetUp, EndsAtOnceWithoutADevice) {
  open({"a0"}, {});
  begin();
  run();
  expect_none("the peer's host has no RDMA device");
}

TEST_F(SetUp, EndsAtOnceWithoutAnActivePort) {
  open({"a0"}, {"b0"});
  fabric.set_port("b0", 1, PortState::down);
  begin();
  run();
  expect_none("the peer's b0 port 1 is not active");
}

TEST_F(SetUp, GoesOnWhenACallFails) {
  for (const VerbsCall call : {VerbsCall::register_memory, VerbsCall::create_queue_pair, VerbsCall::prepare,
                               VerbsCall::post_receive, VerbsCall::ready_to_receive, VerbsCall::ready_to_send})
    for (const std::uint64_t after : {0U, 1U}) {  // the first call, or the next one
      open();
      begin();
      fabric.fail(call, ENOMEM, after);
      run();
      ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << name_of(call) << " after " << after;
      EXPECT_THAT(ends[0]->failed()[0], HasSubstr(name_of(call)));
      for (const auto& end : ends) EXPECT_NE(end->take(), nullptr) << name_of(call);
    }
}

TEST_F(SetUp, ALimitOfLockedMemoryIsNamedWithItsRemedyAtBothEnds) {
  open({"a0"}, {"b0"});
  begin();
  for (int calls = 0; calls < 100; ++calls) fabric.fail(VerbsCall::register_memory, ENOMEM);
  run();
  expect_none("raise the limit of locked memory");
  EXPECT_EQ(fabric.registered_bytes(), 0U);
}

TEST_F(SetUp, OfPeersWithDifferentMtusTakesTheSmallerOne) {
  fabric.add_ethernet("c0", "10.0.0.3", 1'024);
  open({"a0"}, {"c0"});
  begin();
  run();
  for (const auto& end : ends) EXPECT_EQ(end->mtu(), 1'024U);
  ASSERT_THAT(fabric.paths(), SizeIs(2));
  for (const QueuePairPath& path : fabric.paths()) EXPECT_EQ(path.mtu, 1'024U);
  expect_channel("a0", "c0");
}

// Virtual functions of one InfiniBand port: a packet without a GID reaches none of them. It is enough that one end is such.
TEST_F(SetUp, OfPortsThatShareALidUsesTheirGids) {
  fabric.add_infiniband("c0", 4, "fe80::41");
  fabric.add_infiniband("d0", 4, "fe80::42");
  fabric.add_infiniband("d1", 9);
  for (const char* const peer : {"d0", "d1"}) {
    open({"c0"}, {peer});
    begin();
    run();
    const auto paths = fabric.paths();
    ASSERT_EQ(paths.size(), 2U) << peer;
    for (const QueuePairPath& path : paths) EXPECT_EQ(path.gid_index, 0U);
    expect_channel("c0", peer);
    for (auto& end : ends) end.reset();
  }
}

TEST_F(SetUp, ARefusalBeforeTheFirstProposalIsIgnored) {
  open({"a0"}, {"b0"});
  begin();
  ASSERT_TRUE(ends[0]->hear(encode(Refusal{0, "of nothing"})).ok());
  run();
  EXPECT_THAT(ends[0]->failed(), SizeIs(0));
  expect_channel("a0", "b0");
}

// It has the number of a queue pair that exists no more, or is another one by now.
TEST_F(SetUp, IgnoresAnAnswerToAnEarlierAttempt) {
  fabric.separate("a0", "b0");
  open();
  begin();
  std::string earlier;
  for (int rounds = 0; rounds < 1'000 && ends[0]->failed().empty(); ++rounds) {
    while (const auto message = ends[0]->next_message()) ASSERT_TRUE(ends[1]->hear(*message).ok());
    while (const auto message = ends[1]->next_message()) {
      if (std::holds_alternative<Acceptance>(decode_set_up(*message).value())) earlier = *message;
      ASSERT_TRUE(ends[0]->hear(*message).ok());
    }
    fabric.run();
    for (const auto& end : ends) end->advance();
  }
  ASSERT_THAT(ends[0]->failed(), SizeIs(1));
  ASSERT_FALSE(earlier.empty());
  EXPECT_TRUE(ends[0]->hear(earlier).ok());
  run();
  EXPECT_THAT(ends[0]->failed(), SizeIs(1));
  expect_channel("a1", "b1");
}

TEST_F(SetUp, ADeviceThatCannotBeOpenedIsLeftOut) {
  fabric.fail(VerbsCall::open_device, EACCES);
  open();
  ASSERT_THAT(devices[0]->troubles(), SizeIs(1));
  EXPECT_THAT(devices[0]->troubles()[0], HasSubstr("/dev/infiniband/uverbs"));
  begin();
  run();
  expect_channel("a1", "b1");
}

TEST_F(SetUp, APeerWithAnotherRingIsRefused) {
  open();
  begin();
  ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
  auto proposal = std::get<Proposal>(decode_set_up(*ends[0]->next_message()).value());
  proposal.address.ring_size *= 2;
  ASSERT_TRUE(ends[1]->hear(encode(proposal)).ok());
  const auto refusal = std::get<Refusal>(decode_set_up(*ends[1]->next_message()).value());
  EXPECT_THAT(refusal.why, HasSubstr("ring of 32768 bytes"));
}

TEST_F(SetUp, MessagesOutOfTurnEndIt) {
  open();
  const std::string offer = encode(Offer{});
  const std::string decision = encode(Decision{1, Verdict::use, {}});
  begin();
  EXPECT_THAT(std::string(ends[1]->hear(offer).text()), HasSubstr("not its turn"));
  EXPECT_THAT(std::string(ends[0]->hear(decision).text()), HasSubstr("not its turn"));
  begin();
  EXPECT_THAT(std::string(ends[0]->hear("garbage").text()), HasSubstr("malformed"));
  begin();
  run();
  EXPECT_THAT(std::string(ends[0]->hear(encode(Refusal{1, "late"})).text()), HasSubstr("not its turn"));
}

TEST_F(SetUp, SurvivesRandomMessages) { survive_random_messages(); }

}  // namespace
}  // namespace seto::rdma

#include "transports/rdma/connect/managed_path.h"

#include <poll.h>

#include <cerrno>
#include <set>

#include "src/base/fd.h"
#include "tests/support/fake_manager.h"
#include "tests/unit/rdma/set_up_ends.h"

namespace seto::rdma {
namespace {

using support::FakeManager;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = ManagerEvent::Kind;

class ManagedSetUp : public SetUp {
 protected:
  ManagedSetUp() { managers[0] = managers[1] = &manager; }
  ~ManagedSetUp() override {
    for (auto& end : ends) end.reset();  // before the manager
  }

  void expect_paths_of_manager() {
    ASSERT_THAT(fabric.paths(), SizeIs(2));
    for (const QueuePairPath& path : fabric.paths()) {
      EXPECT_EQ(path.service_level, FakeManager::kServiceLevel);
      EXPECT_EQ(path.flow_label, FakeManager::kFlowLabel);
      EXPECT_EQ(path.timeout, QueuePairPath().timeout) << "that is a setting";
      EXPECT_EQ(path.retry_count, QueuePairPath().retry_count);
      EXPECT_EQ(path.rnr_retry_count, QueuePairPath().rnr_retry_count);
    }
  }
  void run_until_failed(std::size_t attempts) {
    for (int rounds = 0; rounds < 100 && ends[0]->failed().size() < attempts; ++rounds) {
      pass_messages();
      fabric.run();
      for (const auto& end : ends) (void)end->advance();
    }
    ASSERT_THAT(ends[0]->failed(), SizeIs(attempts));
  }

  FakeManager manager{fabric};
};

TEST_F(ManagedSetUp, TakesThePathOfTheManager) {
  traffic_class = 104;
  open();
  begin();
  run();
  EXPECT_EQ(messages, 5) << "of the control plane";
  for (const auto& end : ends) EXPECT_TRUE(end->by_manager());
  expect_paths_of_manager();
  for (const QueuePairPath& path : fabric.paths()) {
    EXPECT_EQ(path.traffic_class, 104);
    EXPECT_GE(path.own_sequence, 100U);
    EXPECT_LT(path.own_sequence, 102U) << "the packet numbers are those that the manager has passed on";
  }
  EXPECT_EQ(manager.connections(), 0U) << "it is needed for the set-up only";
  expect_channel("a0", "b0");
}

TEST_F(ManagedSetUp, OfInfinibandToo) {
  fabric.add_infiniband("c0", 4);
  fabric.add_infiniband("d0", 9);
  open({"c0"}, {"d0"});
  begin();
  run();
  expect_paths_of_manager();
  for (const QueuePairPath& path : fabric.paths()) EXPECT_FALSE(path.gid_index.has_value());
  expect_channel("c0", "d0");
}

// The manager knows the MTU of the calling end only.
TEST_F(ManagedSetUp, OfPeersWithDifferentMtusTakesTheSmallerOne) {
  fabric.add_ethernet("c0", "10.0.0.3", 1'024);
  for (const bool caller_is_large : {true, false}) {
    open({caller_is_large ? "a0" : "c0"}, {caller_is_large ? "c0" : "a0"});
    begin();
    run();
    for (const auto& end : ends) EXPECT_EQ(end->mtu(), 1'024U);
    ASSERT_THAT(fabric.paths(), SizeIs(2));
    for (const QueuePairPath& path : fabric.paths()) EXPECT_EQ(path.mtu, 1'024U);
    for (auto& end : ends) EXPECT_NE(end->take(), nullptr);
  }
}

TEST_F(ManagedSetUp, CallsWithoutAnswerEndBeforeTheTimeOfASetUp) {
  constexpr std::uint64_t kSetUpNs = 30'000'000'000;  // of LinkRails
  fabric.add_ethernet("a2", "10.2.0.1");
  fabric.add_ethernet("b2", "10.2.0.2");
  manager.lose(Kind::called, 1'000);
  const std::vector<std::string> here = {"a0", "a1", "a2"};
  const std::vector<std::string> there = {"b0", "b1", "b2"};
  // Types of RoCE make no other call: one network has an address of its own and one of the link.
  for (const auto& [networks, calls] : {std::pair<std::size_t, std::size_t>{1, 2}, {3, 4}}) {
    open({here.begin(), here.begin() + networks}, {there.begin(), there.begin() + networks});
    begin();
    const std::uint64_t start_ns = now_ns;
    for (bool ended = false; !ended && now_ns - start_ns < 2 * kSetUpNs; now_ns += 100'000'000) {
      pass_messages();
      ended = ends[0]->advance();
      (void)ends[1]->advance();
    }
    EXPECT_LT(now_ns - start_ns, kSetUpNs);
    pass_messages();
    expect_none("the call of the connection manager was not answered");
    EXPECT_THAT(ends[0]->failed(), SizeIs(calls));
  }
}

TEST_F(ManagedSetUp, NeedsItAtBothEnds) {
  for (const std::size_t without : {0U, 1U}) {
    managers[without] = nullptr;
    managers[1 - without] = &manager;
    open();
    begin();
    run();
    for (const auto& end : ends) EXPECT_FALSE(end->by_manager());
    for (const QueuePairPath& path : fabric.paths()) EXPECT_EQ(path.service_level, 0);
    expect_channel("a0", "b0");
  }
}

TEST_F(ManagedSetUp, GoesOnWhenACallFails) {
  for (std::size_t call = 0; call < kManagerCalls; ++call)
    for (const std::uint64_t after : {0, 1}) {  // at both ends where both make it
      const auto failing = static_cast<ManagerCall>(call);
      const bool of_both =
          failing == ManagerCall::create_channel || failing == ManagerCall::create_id || failing == ManagerCall::query_path;
      if (after > 0 && !of_both) continue;
      open();
      begin();
      manager.fail(failing, ENODEV, after);
      run();
      ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << name_of(failing) << " after " << after;
      EXPECT_THAT(ends[0]->failed()[0], HasSubstr(name_of(failing)));
      for (const auto& end : ends) EXPECT_NE(end->take(), nullptr) << name_of(failing);
      EXPECT_EQ(manager.connections(), 0U);
    }
}

TEST_F(ManagedSetUp, GoesOnAfterAFailureOfTheManager) {
  for (const Kind kind : {Kind::address_resolved, Kind::route_resolved, Kind::answered}) {
    open();
    begin();
    manager.spoil(kind);
    run();
    ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << static_cast<int>(kind);
    EXPECT_THAT(ends[0]->failed()[0], HasSubstr("RDMA to rank 1: a failure of the manager"));
    for (const auto& end : ends) EXPECT_NE(end->take(), nullptr);
  }
}

TEST_F(ManagedSetUp, GoesOnWhenTheQueuePairRefusesThePath) {
  for (const std::uint64_t after : {0, 1}) {
    open();
    begin();
    fabric.fail(VerbsCall::ready_to_receive, EINVAL, after);
    run();
    ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << after;
    EXPECT_THAT(ends[0]->failed()[0], HasSubstr("ibv_modify_qp (rtr)"));
    for (const auto& end : ends) EXPECT_NE(end->take(), nullptr);
  }
}

// The other end still listens, and is told with the next proposal.
TEST_F(ManagedSetUp, WaitsOnlySoLongForEachStep) {
  for (const Kind kind : {Kind::address_resolved, Kind::route_resolved, Kind::called, Kind::answered}) {
    open();
    begin();
    manager.lose(kind);
    for (int rounds = 0; rounds < 10; ++rounds) {
      pass_messages();
      for (const auto& end : ends) EXPECT_FALSE(end->advance());
    }
    EXPECT_THAT(ends[0]->failed(), SizeIs(0));
    now_ns += 5'000'000'001;
    run();
    ASSERT_THAT(ends[0]->failed(), SizeIs(1)) << static_cast<int>(kind);
    EXPECT_THAT(ends[0]->failed()[0], HasSubstr("the call of the connection manager was not answered"));
    expect_paths_of_manager();
    for (const auto& end : ends) EXPECT_NE(end->take(), nullptr);
    EXPECT_EQ(manager.connections(), 0U);
  }
}

TEST_F(ManagedSetUp, ASlowManagerIsWaitedFor) {
  open();
  begin();
  manager.hold_events();
  for (int rounds = 0; rounds < 10; ++rounds) {
    pass_messages();
    now_ns += 400'000'000;
    for (const auto& end : ends) EXPECT_FALSE(end->advance());
  }
  manager.let_go();
  run();
  EXPECT_THAT(ends[0]->failed(), SizeIs(0));
  expect_channel("a0", "b0");
}

TEST_F(ManagedSetUp, ManyUnauthenticatedCallersAreRefused) {
  open();
  begin();
  while (manager.listeners().empty()) ASSERT_TRUE(pass_messages());
  const ManagerAddress listener = manager.listeners().front();
  manager.hold_events();
  std::vector<std::unique_ptr<ManagedConnection>> foreign;
  for (int i = 0; i < 100; ++i) {
    foreign.push_back(manager.new_connection().value());
    ASSERT_TRUE(foreign.back()->resolve_address({{gid_of("10.0.0.1")}, listener, 0, 1'000}).ok());
    ASSERT_TRUE(foreign.back()->call({17, random_token()}).ok());
  }
  manager.let_go();
  (void)ends[1]->advance();
  EXPECT_LT(manager.refused(), 100U) << "many of them do not hold the owner up";
  run();
  EXPECT_EQ(manager.refused(), 100U);
  EXPECT_THAT(ends[0]->failed(), SizeIs(0));
  expect_channel("a0", "b0");
}

TEST_F(ManagedSetUp, OnlyThePeerIsAccepted) {
  const Token token = random_token();
  int connected = 0;
  ManagedPath::Setup setup;
  setup.manager = &manager;
  setup.own.gid = gid_of("10.0.0.2");
  setup.device = "b0";
  setup.port = 1;
  setup.greeting = {50, token};
  setup.peer_queue_pair = 40;
  setup.connect = [&](const QueuePairPath& path) {
    EXPECT_EQ(path.remote_queue_pair, 40U);
    ++connected;
    return Status();
  };
  const auto path = ManagedPath::listen(setup).value();
  const auto call = [&](const ManagerGreeting& greeting) {
    const auto caller = manager.new_connection().value();
    EXPECT_TRUE(caller->resolve_address({{gid_of("10.0.0.1")}, manager.listeners().front(), 0, 1'000}).ok());
    EXPECT_TRUE(caller->call(greeting).ok());
    EXPECT_TRUE(path->advance().ok());
    (void)caller->next_event();  // the address
    const auto answer = caller->next_event();
    return answer.has_value() ? answer->kind : Kind::other;
  };
  EXPECT_EQ(call({40, random_token()}), Kind::failed);
  EXPECT_EQ(call({41, token}), Kind::failed);
  EXPECT_EQ(call({40, {}}), Kind::failed);
  EXPECT_FALSE(path->connected());
  EXPECT_EQ(call({40, token}), Kind::answered);
  EXPECT_TRUE(path->connected());
  EXPECT_EQ(call({40, token}), Kind::failed) << "it comes once";
  EXPECT_EQ(connected, 1);
}

// Another process listens at the address by now.
TEST_F(ManagedSetUp, OnlyThePeerMayAnswer) {
  const ManagerGreeting own{40, random_token()};
  for (const ManagerGreeting& answer : {ManagerGreeting{50, random_token()}, ManagerGreeting{51, own.token}}) {
    const auto other = manager.new_connection().value();
    ManagerAddress there;
    there.gid = gid_of("10.0.0.2");
    there.service = other->listen(there).value();
    ManagedPath::Setup setup;
    setup.manager = &manager;
    setup.own.gid = gid_of("10.0.0.1");
    setup.device = "a0";
    setup.port = 1;
    setup.peer = "rank 1";
    setup.greeting = own;
    setup.peer_queue_pair = 50;
    setup.connect = [](const QueuePairPath&) {
      ADD_FAILURE() << "the queue pair of another process";
      return Status();
    };
    const auto path = ManagedPath::call(setup, there).value();
    ASSERT_TRUE(path->advance().ok());
    ASSERT_EQ(other->next_event()->kind, Kind::called);
    ASSERT_TRUE(other->accept(answer).ok());
    EXPECT_THAT(std::string(path->advance().text()), HasSubstr("another process than rank 1"));
  }
}

TEST_F(ManagedSetUp, ThePortOfTheManagerMustBeTheChosenOne) {
  manager.confuse_devices("elsewhere");
  open({"a0"}, {"b0"});
  begin();
  ASSERT_NO_FATAL_FAILURE(run_until_failed(1));
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("uses port 1 of elsewhere for 10.0.0.1, which is an address of port 1 of a0"));
}

TEST_F(ManagedSetUp, ThePartitionIsThatOfTheManager) {
  DeviceFacts one = fabric.facts()[0];
  DeviceFacts other = fabric.facts()[2];
  ASSERT_EQ(one.name, "a0");
  ASSERT_EQ(other.name, "b0");
  one.name = "c0";
  other.name = "d0";
  one.ports[0].gids[3].gid = gid_of("10.2.0.1");
  other.ports[0].gids[3].gid = gid_of("10.2.0.2");
  one.ports[0].pkeys = other.ports[0].pkeys = {0xffff, 0x8001};
  fabric.add(one);
  fabric.add(other);
  manager.set_pkey_index(1);
  open({"c0"}, {"d0"});
  begin();
  run();
  for (const QueuePairPath& path : fabric.paths()) EXPECT_EQ(path.pkey_index, 1);
  expect_channel("c0", "d0");
}

TEST_F(ManagedSetUp, AProposalThatWasNotOfferedIsRefused) {
  managers[1] = nullptr;
  open();
  begin();
  ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
  auto proposal = std::get<Proposal>(decode_set_up(*ends[0]->next_message()).value());
  ASSERT_FALSE(proposal.token.has_value());
  proposal.token = random_token();
  ASSERT_TRUE(ends[1]->hear(encode(proposal)).ok());
  const auto refusal = std::get<Refusal>(decode_set_up(*ends[1]->next_message()).value());
  EXPECT_THAT(refusal.why, HasSubstr("has not offered"));
}

TEST_F(ManagedSetUp, AnAcceptanceWithoutAListenerEndsTheAttempt) {
  open({"a0"}, {"b0"});
  begin();
  ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
  ASSERT_TRUE(ends[1]->hear(*ends[0]->next_message()).ok());
  auto acceptance = std::get<Acceptance>(decode_set_up(*ends[1]->next_message()).value());
  ASSERT_TRUE(acceptance.listener.has_value());
  acceptance.listener.reset();
  ASSERT_TRUE(ends[0]->hear(encode(acceptance)).ok());
  ASSERT_FALSE(ends[0]->failed().empty());
  EXPECT_THAT(ends[0]->failed()[0], HasSubstr("does not listen"));
}

// The message asks for a probe before the manager has connected the queue pair.
TEST_F(ManagedSetUp, NothingIsSentBeforeTheQueuePairIsConnected) {
  open({"a0"}, {"b0"});
  begin();
  ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
  ASSERT_TRUE(ends[1]->hear(*ends[0]->next_message()).ok());
  for (const Verdict verdict : {Verdict::probe, Verdict::use}) {
    ASSERT_TRUE(ends[1]->hear(encode(Decision{1, verdict, {}})).ok());
    EXPECT_FALSE(ends[1]->advance());
    begin();
    ASSERT_TRUE(ends[0]->hear(*ends[1]->next_message()).ok());
    ASSERT_TRUE(ends[1]->hear(*ends[0]->next_message()).ok());
  }
  EXPECT_EQ(fabric.doorbells(), 0U);
}

TEST_F(ManagedSetUp, ItsDescriptorIsWatchedAsLongAsItExists) {
  std::set<int> watched;
  const auto connection = manager.new_connection().value();
  ManagedPath::Setup setup;
  setup.manager = &manager;
  setup.own.gid = gid_of("10.0.0.2");
  setup.device = "b0";
  setup.port = 1;
  setup.greeting = {50, random_token()};  // the caller is not the peer
  setup.watch = [&](int descriptor, bool begins) {
    EXPECT_EQ(begins ? watched.insert(descriptor).second : watched.erase(descriptor) == 1, true);
    return true;
  };
  auto path = ManagedPath::listen(setup).value();
  ASSERT_THAT(watched, SizeIs(1));
  pollfd readable{*watched.begin(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  ASSERT_TRUE(connection->resolve_address({{gid_of("10.0.0.1")}, manager.listeners().front(), 0, 1'000}).ok());
  ASSERT_TRUE(connection->call({}).ok());
  EXPECT_EQ(poll(&readable, 1, 0), 1);
  ASSERT_TRUE(path->advance().ok());
  EXPECT_EQ(poll(&readable, 1, 0), 0) << "or the owner would not sleep any more";
  path.reset();
  EXPECT_THAT(watched, SizeIs(0));
  setup.watch = [](int, bool) { return false; };
  EXPECT_FALSE(ManagedPath::listen(setup).ok());
}

TEST_F(ManagedSetUp, SurvivesRandomMessages) { survive_random_messages(); }

}  // namespace
}  // namespace seto::rdma

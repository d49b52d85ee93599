#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/support/fake_manager.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using support::FakeManager;
using support::RdmaHost;
using ::testing::Each;
using ::testing::Field;
using ::testing::SizeIs;

// Pipes of two hosts whose paths are from the connection manager.
class ManagedPipes : public ::testing::Test {
 protected:
  ManagedPipes() {
    fabric.add_ethernet("a0", "10.0.0.1");
    fabric.add_ethernet("b0", "10.0.0.2");
    QueuePairPath path;
    path.traffic_class = 104;
    here = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"a0"}, path, &manager);
    there = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"b0"}, path, &manager);
  }
  static bool readable(PipeMaker& pipes) {
    pollfd one{pipes.descriptor(), POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  }

  FakeFabric fabric{testing::chosen_seed()};
  FakeManager manager{fabric};
  std::unique_ptr<RdmaHost> here, there;
};

TEST_F(ManagedPipes, CarryBytesOverItsPath) {
  const auto pipes = support::connect_pipes(here->pipes(), there->pipes(), [this] { fabric.run(); });
  ASSERT_TRUE(pipes.first != nullptr && pipes.second != nullptr);
  ASSERT_THAT(fabric.paths(), SizeIs(2));
  EXPECT_THAT(fabric.paths(), Each(Field(&QueuePairPath::flow_label, FakeManager::kFlowLabel)));
  EXPECT_THAT(fabric.paths(), Each(Field(&QueuePairPath::traffic_class, 104)));
  char sent[] = "over the path of the manager";
  const iovec out[] = {{sent, sizeof sent}};
  ASSERT_EQ(pipes.first->send(out), static_cast<ssize_t>(sizeof sent));
  fabric.run();
  there->pipes().poll();
  char got[sizeof sent] = {};
  const iovec in[] = {{got, sizeof got}};
  ASSERT_EQ(pipes.second->receive(in), static_cast<ssize_t>(sizeof sent));
  EXPECT_STREQ(got, sent);
}

// The manager of the end that is called knows the MTU of its own port only.
TEST_F(ManagedPipes, TakeTheSmallerMtuThatIsSet) {
  here = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"a0"}, PipeTerms{.manager = &manager, .most_mtu = 512});
  const auto pipes = support::connect_pipes(here->pipes(), there->pipes(), [this] { fabric.run(); });
  ASSERT_TRUE(pipes.first != nullptr && pipes.second != nullptr);
  EXPECT_THAT(fabric.paths(), Each(Field(&QueuePairPath::mtu, 512)));
}

TEST_F(ManagedPipes, AnEventOfTheManagerEndsASleepOnce) {
  const auto selects = here->pipes().begin({PipeMaker::Role::selects, "rank 1", {}, 0});
  const auto follows = there->pipes().begin({PipeMaker::Role::follows, "rank 0", {}, 0});
  const auto pass = [](PipeSetUp& from, PipeSetUp& to) {
    while (const auto message = from.next_message()) ASSERT_TRUE(to.hear(*message).ok());
  };
  pass(*follows, *selects);
  pass(*selects, *follows);
  EXPECT_FALSE(readable(here->pipes()));
  pass(*follows, *selects);  // it asks for the route of the listener
  EXPECT_TRUE(readable(here->pipes()));
  EXPECT_FALSE(readable(there->pipes()));
  EXPECT_FALSE(selects->advance());
  EXPECT_TRUE(readable(there->pipes())) << "it was called";
  EXPECT_FALSE(follows->advance());
  EXPECT_FALSE(readable(there->pipes()));
  for (bool ended = false, other = false; !ended || !other;) {
    ended = selects->advance();
    pass(*selects, *follows);
    fabric.run();
    other = follows->advance();
  }
  for (RdmaHost* const host : {here.get(), there.get()}) {
    host->pipes().arm();
    EXPECT_FALSE(readable(host->pipes())) << "nothing is left that wakes";
  }
  EXPECT_EQ(manager.connections(), 0U);
  EXPECT_TRUE(selects->take() != nullptr && follows->take() != nullptr);
}

}  // namespace
}  // namespace seto::rdma

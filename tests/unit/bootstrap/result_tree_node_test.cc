// A node in the tree of results that gets unauthenticated connections.
#include "src/bootstrap/tree/result_tree_node.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "src/bootstrap/tree/result_tree.h"
#include "src/net/local_socket.h"
#include "tests/support/child_process.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::ChildProcess;
using testing::later;
using testing::loopback_network;

constexpr int kRanks = 64;

ResultTreeNode seat_of(Rank rank) {
  return ResultTreeNode::create({rank, kRanks, 0, Secret::of_text("a test's")}, loopback_network(), Listeners::Reach::machine);
}

PrivateFd unauthenticated_connection_to(const ResultTreeNode& node) {
  return connect_local(node.address().socket_name, SocketKind::stream, later()).value();
}

// Whether the node has work now.
bool is_awake(const ResultTreeNode& node) {
  std::vector<pollfd> entries;
  node.prepare(entries);
  return poll(entries.data(), entries.size(), 0) > 0;
}

// A connection that has had its turn makes room for another, and then there is work again. So a few tries are allowed: a machine
// that takes the core away for a turn between the two lines does not do so often.
bool comes_to_rest(ResultTreeNode& node) {
  for (int turn = 0; turn < 5; ++turn) {
    node.advance();
    if (!is_awake(node)) return true;
  }
  return false;
}

TEST(ResultTreeNode, UnauthenticatedConnectionsDoNotKeepItsThreadBusyAndAreClosed) {
  ResultTreeNode parent = seat_of(0);
  std::vector<PrivateFd> unauthenticated;
  for (int count = 0; count < 3 * kTreeFan; ++count) unauthenticated.push_back(unauthenticated_connection_to(parent));
  EXPECT_TRUE(comes_to_rest(parent));

  const Rank rank = tree_children(0, kRanks).front();
  ResultTreeNode child = seat_of(rank);
  child.set_parent(parent.address());
  child.expect();
  parent.send_to_children("all of it");
  const Deadline until = later();
  std::optional<std::string> result;
  while (!result && !child.parent_lost() && !until.passed()) {
    std::vector<pollfd> entries;
    parent.prepare(entries);
    child.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), std::min(parent.wait_ms(), child.wait_ms())));
    parent.advance();
    child.advance();
    result = child.take_result();
  }
  ASSERT_TRUE(result.has_value()) << "the child waited longer than its timeout";
  EXPECT_EQ(*result, "all of it");
}

TEST(ResultTreeNode, WithoutDescriptorsItsThreadIsNotBusyEither) {
  ChildProcess process([] {
    ResultTreeNode parent = seat_of(0);
    const PrivateFd connection = unauthenticated_connection_to(parent);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(connection.get()) + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_TRUE(is_awake(parent));
    parent.advance();
    EXPECT_FALSE(is_awake(parent));
    EXPECT_LE(parent.wait_ms(), 1'000) << "it tries again";
    return true;
  });
  EXPECT_TRUE(process.wait());
}

}  // namespace
}  // namespace seto

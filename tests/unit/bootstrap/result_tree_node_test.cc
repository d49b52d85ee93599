// A seat in the tree of results at whose door strangers stand.
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

TreeSeat seat_of(Rank rank) {
  return TreeSeat::take({rank, kRanks, 0, Secret::of_text("a test's")}, loopback_network(), Doors::Reach::machine);
}

PrivateFd stranger_at(const TreeSeat& seat) {
  return connect_local(seat.contact().socket_name, SocketKind::stream, later()).value();
}

// Something to do at once.
bool is_awake(const TreeSeat& seat) {
  std::vector<pollfd> entries;
  seat.prepare(entries);
  return poll(entries.data(), entries.size(), 0) > 0;
}

TEST(TreeSeat, StrangersWhoFillItDoNotKeepItsThreadBusyAndHaveToLeave) {
  TreeSeat parent = seat_of(0);
  std::vector<PrivateFd> strangers;
  for (int count = 0; count < 3 * kTreeFan; ++count) strangers.push_back(stranger_at(parent));
  parent.advance();
  EXPECT_FALSE(is_awake(parent));

  const Rank rank = tree_children(0, kRanks).front();
  TreeSeat child = seat_of(rank);
  child.set_parent(parent.contact());
  child.expect();
  parent.hand_down("all of it");
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
  ASSERT_TRUE(result.has_value()) << "kept out for longer than it waits";
  EXPECT_EQ(*result, "all of it");
}

TEST(TreeSeat, WithoutDescriptorsItsThreadIsNotBusyEither) {
  ChildProcess process([] {
    TreeSeat parent = seat_of(0);
    const PrivateFd stranger = stranger_at(parent);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(stranger.get()) + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_TRUE(is_awake(parent));
    parent.advance();
    EXPECT_FALSE(is_awake(parent));
    EXPECT_LE(parent.wait_ms(), 1'000) << "it looks again";
    return true;
  });
  EXPECT_TRUE(process.wait());
}

}  // namespace
}  // namespace seto

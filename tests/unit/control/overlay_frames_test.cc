// Frames that a member of an overlay receives: malformed ones, and whom it blames for them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/control/overlay/overlay_node.h"

namespace seto {
namespace {

class Silent final : public OverlayNode::Output {
 public:
  void send(OverlayMember, const OverlayFrame&) override { ++sent; }
  int sent = 0;
};

TEST(OverlayNode, RefusesMalformedFrames) {
  const OverlayGraph graph({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}});
  Silent silent;
  OverlayNode node(graph, 0, silent);
  node.attach(1);
  OverlayNode::Events events;
  const std::string zeros(kRelayHeadSize, '\0');
  const auto refused = [&](const OverlayFrame& frame) { return !node.receive(1, frame, events).ok(); };
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 1, 0, {}}));
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 0, 0, zeros})) << "of itself";
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 8, 0, zeros})) << "of no member";
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 3, 0, zeros})) << "another member's path ends with another edge";
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 1, 3, zeros})) << "without the members between";
  std::string path = zeros;
  path[35] = 127;  // hops
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 1, 0, path}));
  std::string heard = zeros;
  heard[8] = 1;
  EXPECT_TRUE(refused({OverlayFrameKind::relayed, 1, 0, heard})) << "nothing was said";
  EXPECT_TRUE(refused({OverlayFrameKind::edge_lost, 0, 3, "why"})) << "no edge";
  EXPECT_FALSE(node.receive(5, {OverlayFrameKind::left, 5, 0, {}}, events).ok()) << "there is no edge to it";
  EXPECT_TRUE(events.deliveries.empty() && events.losses.empty());
}

// The head of a frame that these have passed on.
std::string head_along(const std::vector<OverlayMember>& path) {
  std::string head(kRelayHeadSize, '\0');
  head[35] = head[36] = static_cast<char>(path.size());
  for (std::size_t hop = 0; hop < path.size(); ++hop) head[40 + 2 * hop] = static_cast<char>(path[hop]);
  return head;
}

// The peer passes on what it cannot judge: it is not to blame.
TEST(OverlayNode, WhatIsWrongBetweenTwoOthersEndsNoEdge) {
  Silent silent;
  OverlayNode node(OverlayGraph({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}}), 0, silent);
  node.attach(1);
  OverlayNode::Events events;
  const auto taken = [&](const OverlayFrame& frame) { return node.receive(1, frame, events).ok(); };
  EXPECT_TRUE(taken({OverlayFrameKind::relayed, 0, 0, head_along({3, 1})})) << "says that it is of this process";
  EXPECT_FALSE(taken({OverlayFrameKind::relayed, 0, 0, head_along({1})})) << "the peer would have heard that from this process";
  std::string nowhere = head_along({1, 0, 99});
  nowhere[36] = 1;
  EXPECT_TRUE(taken({OverlayFrameKind::relayed, 3, 5, nowhere})) << "its sender chose that path";
  EXPECT_FALSE(taken({OverlayFrameKind::relayed, 1, 5, nowhere})) << "the peer chose it";
  EXPECT_TRUE(taken({OverlayFrameKind::left, 0, 0, {}})) << "any member may have told that this one has left";
  EXPECT_FALSE(node.has_left());
  EXPECT_TRUE(events.losses.empty());
  EXPECT_EQ(silent.sent, 0) << "none of that is passed on";
  std::string heard = head_along({1});
  heard[8] = 1;
  EXPECT_TRUE(taken({OverlayFrameKind::relayed, 3, 0, heard})) << "of what was never said";
  ASSERT_EQ(events.losses.size(), 1U);
  EXPECT_EQ(events.losses[0].member, 3U) << "these two cannot go on";
  EXPECT_TRUE(node.routes().usable(0, 1));
  EXPECT_TRUE(taken({OverlayFrameKind::left, 1, 0, {}})) << "the peer is heard as before";
  EXPECT_EQ(node.routes().left().count(1), 1U);
}

TEST(OverlayNode, APeerThatEndedBeforeItWasAttachedIsNoEdge) {
  Silent silent;
  OverlayNode node(OverlayGraph({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}}), 0, silent);
  OverlayNode::Events events;
  node.lose(1, "it has ended its part", events);
  node.attach(1);
  EXPECT_EQ(silent.sent, 0);
  EXPECT_FALSE(node.is_needed()) << "it has no edge";
  EXPECT_TRUE(node.send(3, {7, 0, 0, 0, "a word"}, 10'000));
  EXPECT_EQ(silent.sent, 0);
}

TEST(OverlayNode, GivesUpOneThatAcknowledgesNothing) {
  Silent silent;
  OverlayNode node(OverlayGraph({{0, 0}, {1, 0}, {2, 0}}), 0, silent);
  node.attach(1);
  int taken = 0;
  while (node.send(1, {1, 0, 0, 0, "some bytes"}, 10'000)) ++taken;
  EXPECT_GT(taken, 100);
  OverlayNode::Events events;
  node.give_up(1, "it reads nothing", events);
  ASSERT_EQ(events.losses.size(), 1U);
  EXPECT_EQ(events.losses[0].why, "it reads nothing");
  const int before = silent.sent;
  EXPECT_TRUE(node.send(1, {1, 0, 0, 0, "some bytes"}, 10'000)) << "dropped";
  EXPECT_EQ(silent.sent, before);
  EXPECT_TRUE(node.settled());
}

}  // namespace
}  // namespace seto

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/support/flows.h"
#include "tests/support/peer_groups.h"
#include "tests/support/sanitizers.h"

// The two fixtures of the conformance suite.
namespace seto::support {

using TransportAndMembers = std::tuple<const PeerGroupTransport*, std::uint32_t>;

// All members run at the same time, in threads or processes.
class EveryTransport : public ::testing::TestWithParam<TransportAndMembers> {
 protected:
  [[nodiscard]] static std::uint32_t members() { return std::get<1>(GetParam()); }
  [[nodiscard]] static const PeerGroupTransport& transport() { return *std::get<0>(GetParam()); }
  void run(PeerGroupsWanted wanted, const PeerGroupTransport::Body& body) const {
    wanted.members = members();
    EXPECT_TRUE(transport().run(wanted, body)) << "a member's process failed: see above";
  }
};

// All members run in one thread, one after another, so that a test controls the order.
class OneThread : public ::testing::TestWithParam<const PeerGroupTransport*> {
 protected:
  std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted& wanted) const { return GetParam()->make(wanted); }
};

// Time limit of a wakeup. A woken member may wait for a core behind other tests of a busy machine; after this time the wakeup is
// lost.
inline constexpr int kLostMs = 20'000;

// Checks the condition, arms, and sleeps only if it still does not hold. Returns false if no wakeup came within kLostMs.
template <class Condition>
bool awaited(PeerGroupMember& member, Condition condition, std::uint64_t looks) {
  for (; looks > 0; --looks)
    if (condition()) return true;
  while (true) {
    member.arm();
    const bool there = condition();
    const bool woken = there || member.await_wakeup(kLostMs);
    member.disarm();
    if (there) return true;
    if (!woken) return false;
  }
}

inline std::string name_of_both(const ::testing::TestParamInfo<TransportAndMembers>& info) {
  return std::get<0>(info.param)->name() + "_" + std::to_string(std::get<1>(info.param));
}
inline std::string name_of_one(const ::testing::TestParamInfo<const PeerGroupTransport*>& info) { return info.param->name(); }

inline auto every_transport(std::vector<std::uint32_t> members) {
  return ::testing::Combine(::testing::ValuesIn(peer_group_transports().begin(), peer_group_transports().end()),
                            ::testing::ValuesIn(members));
}

}  // namespace seto::support

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/support/peer_groups.h"
#include "tests/support/flows.h"

// The two ways in which the conformance suite meets a transport.
namespace seto::support {

#ifdef SETO_SANITIZED
inline constexpr std::uint64_t kLess = 10;  // by this a sanitizer's runs are shorter
#else
inline constexpr std::uint64_t kLess = 1;
#endif

using TransportAndMembers = std::tuple<const CircleTransport*, std::uint32_t>;

// Members run at once, in threads or processes.
class EveryTransport : public ::testing::TestWithParam<TransportAndMembers> {
 protected:
  [[nodiscard]] static std::uint32_t members() { return std::get<1>(GetParam()); }
  [[nodiscard]] static const CircleTransport& transport() { return *std::get<0>(GetParam()); }
  void run(CirclesWanted wanted, const CircleTransport::Body& body) const {
    wanted.members = members();
    EXPECT_TRUE(transport().run(wanted, body)) << "a member's process failed: see above";
  }
};

// Members take turns in one thread, so that a test can say what comes first.
class OneThread : public ::testing::TestWithParam<const CircleTransport*> {
 protected:
  std::vector<std::unique_ptr<CircleMember>> make(const CirclesWanted& wanted) const { return GetParam()->make(wanted); }
};

// A woken member may wait for a core, behind the other tests of a busy machine; a lost bell takes this long to be noticed.
inline constexpr int kLostMs = 20'000;

// Looks, and sleeps only if there is still nothing once the others have been told. False: it was there, and nobody rang.
template <class Condition>
bool awaited(CircleMember& member, Condition condition, std::uint64_t looks) {
  for (; looks > 0; --looks)
    if (condition()) return true;
  while (true) {
    member.arm();
    const bool there = condition();
    const bool rung = there || member.await_bell(kLostMs);
    member.disarm();
    if (there) return true;
    if (!rung) return false;
  }
}

inline std::string name_of_both(const ::testing::TestParamInfo<TransportAndMembers>& info) {
  return std::get<0>(info.param)->name() + "_" + std::to_string(std::get<1>(info.param));
}
inline std::string name_of_one(const ::testing::TestParamInfo<const CircleTransport*>& info) { return info.param->name(); }

inline auto every_transport(std::vector<std::uint32_t> members) {
  return ::testing::Combine(::testing::ValuesIn(circle_transports().begin(), circle_transports().end()),
                            ::testing::ValuesIn(members));
}

}  // namespace seto::support

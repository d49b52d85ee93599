// Which transport connects two ranks, and which ranks are members of its peer group.

#include "src/core/connect/announced_ranks.h"

#include <gtest/gtest.h>

namespace seto::testing {
namespace {

// Reaches the places whose host begins with the same letters.
class Prefix final : public Transport {
 public:
  explicit Prefix(std::size_t letters) : letters_(letters) {}
  [[nodiscard]] const char* name() const override { return "prefix"; }
  [[nodiscard]] bool reaches(const Place& own, const Place& peer) const override {
    return own.host.substr(0, letters_) == peer.host.substr(0, letters_);
  }
  [[nodiscard]] Result<Endpoint*> open(OnOutput) override { return failure(Code::internal, "not in this test"); }

 private:
  std::size_t letters_;
};

TEST(AnnouncedRanks, UseTheFirstTransportThatReaches) {
  const Prefix host(2);
  const Prefix site(1);
  const Prefix world(0);
  AnnouncedRanks announced;
  for (const char* const place : {"a1", "b1", "a2", "a1", "b2"}) {
    announced.all.emplace_back();
    announced.all.back().place.host = place;
  }
  announced.rank = 3;
  announced.own = announced.all[3];
  for (const Prefix* const transport : {&host, &site, &world}) announced.transports.push_back({transport, nullptr, nullptr});
  std::vector<std::size_t> used;
  for (const std::size_t peer : {0, 1, 2, 4}) used.push_back(announced.transport_to(peer));
  EXPECT_EQ(used, (std::vector<std::size_t>{0, 2, 1, 2}));
  EXPECT_EQ(announced.members_of(0), (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(announced.members_of(1), (std::vector<std::uint32_t>{0, 2, 3})) << "also those that share memory";
  EXPECT_EQ(announced.members_of(2), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace seto::testing

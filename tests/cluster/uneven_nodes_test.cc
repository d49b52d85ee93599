// Hierarchical collectives over nodes and sites of different sizes, which the ranks state.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/ranks.h"
#include "tests/support/sanitizers.h"
#include "tests/support/slow_links.h"

namespace seto::testing {
namespace {

// The host and the site of each rank, a letter each. Hosts of the same letter share memory, also between sites.
struct Places {
  const char* name;
  std::string_view hosts;
  std::string_view sites;
  [[nodiscard]] int ranks() const { return static_cast<int>(hosts.size()); }
};
constexpr Places kThreeAndOne{"SitesOfThreeAndOne", "aaaa", "AAAB"};
constexpr Places kAll[] = {
    kThreeAndOne,
    {"HostsOfThreeAndOne", "aaab", "AAAA"},
    {"SitesOfTwoThreeAndFiveHosts", "abcdefghij", "AABBBCCCCC"},
    {"HostsOfEightAndFour", "aaaaaaaabbbb", "AAAAAAAAAAAA"},
    {"HostsOfOneTwoAndThreeOnTwoSites", "abbccc", "AAABBB"},
    {"FourHostsOfOneTwoAndThree", "abbcccd", "AAAAAAA"},
};

// Sites of 2, 1 and 3 hosts, with uplinks of 1 : 2 : 4.
constexpr Places kThreeSites{"SitesWithUplinksOfOneTwoFour", "abcdef", "AABCCC"};
constexpr std::string_view kMbit[] = {"250", "500", "1000"};

struct Wishes {
  const char* algorithm = "hierarchical";
  const char* codec = nullptr;
};

setoComm_t join(const Seat& seat, const Places& places, const Wishes& wishes = {}) {
  setoConfig_t config = config_of_test();
  const std::string host = std::string("uneven ") + places.hosts[static_cast<std::size_t>(seat.rank)];
  const std::string site(1, places.sites[static_cast<std::size_t>(seat.rank)]);
  config.hostId = host.c_str();
  config.siteId = site.c_str();
  config.algorithm = wishes.algorithm;
  config.codec = wishes.codec;
  return seat.join(config);
}

// The last one has several slices.
constexpr std::size_t kCounts[] = {0, 1, 13, support::repetitions(70'001, 20'001)};

// Small whole numbers, so that every order of a sum is exact.
float element(int rank, std::size_t index) { return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 13) % 101); }

std::vector<float> elements(int rank, std::size_t begin, std::size_t end) {
  std::vector<float> values;
  for (std::size_t i = begin; i < end; ++i) values.push_back(element(rank, i));
  return values;
}

std::vector<float> sums(int ranks, std::size_t begin, std::size_t end) {
  std::vector<float> values(end - begin);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = begin; i < end; ++i) values[i - begin] += element(rank, i);
  return values;
}

void expect_sums(const Seat& seat, setoComm_t comm, std::size_t count) {
  const auto own = static_cast<std::size_t>(seat.rank);
  const std::size_t all = count * static_cast<std::size_t>(seat.ranks);
  std::vector<float> values = elements(seat.rank, 0, count);
  ASSERT_EQ(answer(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr)).text, "");
  EXPECT_EQ(values, sums(seat.ranks, 0, count));
  const std::vector<float> from = elements(seat.rank, 0, all);
  ASSERT_EQ(answer(setoAllReduce(from.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr)).text, "");
  EXPECT_EQ(values, sums(seat.ranks, 0, count));
  ASSERT_EQ(answer(setoReduceScatter(from.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr)).text, "");
  EXPECT_EQ(values, sums(seat.ranks, own * count, (own + 1) * count));
}

void expect_rooted(const Seat& seat, setoComm_t comm, std::size_t count) {
  const std::vector<float> own = elements(seat.rank, 0, count);
  for (int root = 0; root < seat.ranks; ++root) {
    std::vector<float> values(count, -1);
    ASSERT_EQ(answer(setoReduce(own.data(), values.data(), count, setoFloat32, setoSum, root, comm, nullptr)).text, "");
    EXPECT_EQ(values, root == seat.rank ? sums(seat.ranks, 0, count) : std::vector<float>(count, -1)) << "root " << root;
    values = own;
    ASSERT_EQ(answer(setoBroadcast(values.data(), values.data(), count, setoFloat32, root, comm, nullptr)).text, "");
    EXPECT_EQ(values, elements(root, 0, count)) << "root " << root;
  }
}

void expect_copies(const Seat& seat, setoComm_t comm, std::size_t count) {
  const std::vector<float> own = elements(seat.rank, 0, count);
  std::vector<float> gathered(count * static_cast<std::size_t>(seat.ranks));
  ASSERT_EQ(answer(setoAllGather(own.data(), gathered.data(), count, setoFloat32, comm, nullptr)).text, "");
  for (int rank = 0; rank < seat.ranks; ++rank) {
    const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * count);
    EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(count), elements(rank, 0, count).begin())) << rank;
  }
}

// Block b of a rank goes to rank b.
void expect_blocks(const Seat& seat, setoComm_t comm, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(seat.ranks);
  const auto own = static_cast<std::size_t>(seat.rank);
  const std::vector<float> from = elements(seat.rank, 0, count * ranks);
  std::vector<float> to(count * ranks, -1);
  ASSERT_EQ(answer(setoAlltoAll(from.data(), to.data(), count, setoFloat32, comm, nullptr)).text, "");
  std::vector<float> expected;
  for (int rank = 0; rank < seat.ranks; ++rank) {
    const std::vector<float> block = elements(rank, own * count, (own + 1) * count);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  EXPECT_EQ(to, expected) << count;
}

class UnevenNodes : public ::testing::TestWithParam<Places> {};

TEST_P(UnevenNodes, GiveTheExactResult) {
  const Places places = GetParam();
  run_ranks(Kind::processes, places.ranks(), [places](const Seat& seat) {
    const setoComm_t comm = join(seat, places);
    ASSERT_NE(comm, nullptr);
    for (const std::size_t count : kCounts) {
      expect_sums(seat, comm, count);
      expect_copies(seat, comm, count);
      expect_rooted(seat, comm, count);
      expect_blocks(seat, comm, count);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Where no site has three hosts, the pin is ignored.
TEST_P(UnevenNodes, GoRoundTheHosts) {
  const Places places = GetParam();
  run_ranks(Kind::processes, places.ranks(), [places](const Seat& seat) {
    const setoComm_t comm = join(seat, places, {.algorithm = "host_ring"});
    ASSERT_NE(comm, nullptr);
    for (const std::size_t count : kCounts) {
      expect_sums(seat, comm, count);
      expect_copies(seat, comm, count);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// The root's buffer is spread over the ranks of its site, and over other sites.
TEST_P(UnevenNodes, SpreadABufferFromAndToARoot) {
  const Places places = GetParam();
  run_ranks(Kind::processes, places.ranks(), [places](const Seat& seat) {
    const setoComm_t comm = join(seat, places, {.algorithm = "spread"});
    ASSERT_NE(comm, nullptr);
    for (const std::size_t count : kCounts) expect_rooted(seat, comm, count);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

void state_rate(const Seat& seat) {
  const int site = kThreeSites.sites[static_cast<std::size_t>(seat.rank)] - 'A';
  setenv("SETO_SITE_UPLINK_MBIT", kMbit[site].data(), 1);
}

TEST(UnevenSites, WithStatedRatesGiveTheExactResult) {
  for (const char* algorithm : {"hierarchical", "host_ring", "spread"})
    run_ranks(Kind::processes, kThreeSites.ranks(), [algorithm](const Seat& seat) {
      state_rate(seat);
      const setoComm_t comm = join(seat, kThreeSites, {.algorithm = algorithm});
      ASSERT_NE(comm, nullptr);
      for (const std::size_t count : kCounts) {
        expect_sums(seat, comm, count);
        expect_copies(seat, comm, count);
        expect_rooted(seat, comm, count);
      }
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
}

// Fractions that fp16 does not have: every rank rounds alike.
TEST(UnevenSites, WithStatedRatesGiveAllRanksTheSameBitsInFp16) {
  run_ranks(Kind::processes, kThreeSites.ranks(), [](const Seat& seat) {
    state_rate(seat);
    const setoComm_t comm = join(seat, kThreeSites, {.codec = "world=fp16"});
    ASSERT_NE(comm, nullptr);
    constexpr std::size_t kCount = 50'000;
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = element(seat.rank, i) / 3;
    ASSERT_EQ(answer(setoAllReduce(values.data(), values.data(), kCount, setoFloat32, setoSum, comm, nullptr)).text, "");
    std::vector<float> all(kCount * static_cast<std::size_t>(seat.ranks));
    ASSERT_EQ(answer(setoAllGather(values.data(), all.data(), kCount, setoFloat32, comm, nullptr)).text, "");
    const std::vector<float> exact = sums(seat.ranks, 0, kCount);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], values[i % kCount]) << "rank " << i / kCount;
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(values[i], exact[i] / 3, 0.1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, UnevenNodes, ::testing::ValuesIn(kAll), [](const auto& one) { return one.param.name; });

// Ranks 0 to 2 add a fraction that fp16 does not have, its negative and a small whole number. Their sum is a whole number only if
// no message among them is encoded. Rank 3, on a site of its own, adds a whole number or the fraction.
TEST(UnevenSites, EncodeMessagesBetweenThemAlone) {
  const SlowLinks slow;
  run_ranks(Kind::processes, kThreeAndOne.ranks(), [](const Seat& seat) {
    const setoComm_t comm = join(seat, kThreeAndOne, {.codec = "world=fp16"});
    ASSERT_NE(comm, nullptr);
    constexpr std::size_t kCount = 100'000;
    constexpr float kFraction = 1.0F / 3;
    for (const float of_rank_3 : {5.0F, kFraction}) {
      const float own[] = {kFraction, -kFraction, 7, of_rank_3};
      std::vector<float> values(kCount, own[seat.rank]);
      ASSERT_EQ(answer(setoAllReduce(values.data(), values.data(), kCount, setoFloat32, setoSum, comm, nullptr)).text, "");
      const float exact = 7 + of_rank_3;
      const bool is_exact = values == std::vector<float>(kCount, exact);
      EXPECT_EQ(is_exact, of_rank_3 == 5) << "rank " << seat.rank << ": " << values[0] << ", exactly " << exact;
      EXPECT_NEAR(values[0], exact, 1e-3);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing

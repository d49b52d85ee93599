// A slow link between two of four sites is measured while a job runs: from then on sums go round the sites in an order that does
// not use it, the same on all ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/communicators.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 4;
constexpr std::size_t kCount = 8 * 1024;  // ints: operations of this size report rates
constexpr int kMostCalls = 2'000;

// Each rank is a process and a site of its own.
setoComm_t join(const Seat& seat) {
  pretend_far_sites([own = seat.rank](int to) { return std::uint64_t{own == 0 && to == 1 ? 10'000U : 200'000'000U}; });
  setoConfig_t config = config_of_test();
  const std::string name = "ring " + std::to_string(seat.rank);
  config.hostId = config.siteId = name.c_str();
  return seat.join(config);
}

void expect_sum(const Seat& seat, setoComm_t comm, int turn) {
  std::vector<int> values(kCount, seat.rank + turn);
  ASSERT_EQ(answer(setoAllReduce(values.data(), values.data(), kCount, setoInt32, setoSum, comm, nullptr)).text, "");
  EXPECT_EQ(values, std::vector<int>(kCount, kRanks * (kRanks - 1) / 2 + kRanks * turn));
}

std::string explained(setoComm_t comm) {
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.comm = comm;
  question.collective = "all_reduce";
  question.bytes = kCount * sizeof(int);
  std::string text(64 << 10, '\0');
  EXPECT_EQ(answer(setoExplain(&question, setoFormatText, text.data(), text.size(), nullptr)).text, "");
  return text.substr(0, text.find('\0'));
}

TEST(SiteRing, GoesRoundALinkThatWasMeasuredToBeSlow) {
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = join(seat);
    ASSERT_NE(comm, nullptr);
    EXPECT_THAT(explained(comm), Not(HasSubstr("* site_ring"))) << "nothing was measured";
    int all_changed = 0;
    for (int turn = 0; turn < kMostCalls && all_changed == 0; ++turn) {
      ASSERT_NO_FATAL_FAILURE(expect_sum(seat, comm, turn));
      const std::string text = explained(comm);
      const bool goes_round = text.find("* site_ring") != std::string::npos && text.find("0 > 1 >") == std::string::npos;
      all_changed = goes_round && rate_in_force(comm).bytes_per_second == 10'000 ? 1 : 0;
      ASSERT_EQ(answer(setoAllReduce(&all_changed, &all_changed, 1, setoInt32, setoMin, comm, nullptr)).text, "");
    }
    EXPECT_EQ(all_changed, 1) << explained(comm);
    for (int turn = 0; turn < 20; ++turn) ASSERT_NO_FATAL_FAILURE(expect_sum(seat, comm, turn));
    ASSERT_EQ(answer(setoCommDestroy(comm)).text, "");
  });
}

}  // namespace
}  // namespace seto::testing

#include "src/core/device_memory/rank_statement.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace seto {
namespace {

// The others have waited until their deadline, or tell why they failed.
class FailedBootstrap final : public Bootstrap {
 public:
  explicit FailedBootstrap(Status status) : status_(std::move(status)) {}
  [[nodiscard]] Rank rank() const override { return 1; }
  [[nodiscard]] int size() const override { return 2; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string /*mine*/, Deadline /*until*/) override { return status_; }

 private:
  const Status status_;
};

std::string text_with(Code code, const Result<RankStatement>& mine) {
  FailedBootstrap bootstrap(Status(code, "of the others"));
  return std::string(exchange(bootstrap, mine, Deadline::never()).status().text());
}

TEST(RankStatements, ARankThatIsTooLateSaysWhyItself) {
  const Result<RankStatement> late = failure(Code::timeout, "loading the kernels took too long");
  EXPECT_EQ(text_with(Code::timeout, late), "loading the kernels took too long");
  EXPECT_EQ(text_with(Code::remote_error, late), "of the others");
  EXPECT_EQ(text_with(Code::timeout, RankStatement{}), "of the others");
}

// Ranks whose GPUs hold so many blocks at once. Each has a process and a GPU of its own.
std::vector<RankStatement> statements_of(const std::vector<std::uint32_t>& resident) {
  std::vector<RankStatement> statements;
  for (const std::uint32_t blocks : resident) {
    RankStatement one;
    one.process = statements.size();
    one.gpu.bytes[0] = static_cast<char>(statements.size());
    one.resident_blocks = blocks;
    statements.push_back(one);
  }
  return statements;
}

TEST(RankStatements, ACallBetweenHostsHasTwoBlocksAtMost) {
  const Tiers one_host = Tiers::of({{0, 0}, {0, 0}}), hosts = Tiers::of({{0, 0}, {1, 0}}), sites = Tiers::of({{0, 0}, {1, 1}});
  const Tiers mixed = Tiers::of({{0, 0}, {0, 0}, {1, 0}});  // two of the ranks share a host
  const auto large = statements_of({500, 600});
  EXPECT_EQ(blocks_of(large, one_host).value(), 32U);
  EXPECT_EQ(blocks_of(large, hosts).value(), 2U);
  EXPECT_EQ(blocks_of(large, sites).value(), 2U);
  EXPECT_EQ(blocks_of(statements_of({500, 600, 700}), mixed).value(), 2U);
  // A smaller GPU limits all ranks further.
  EXPECT_EQ(blocks_of(statements_of({500, 20}), one_host).value(), 20U);
  EXPECT_EQ(blocks_of(statements_of({500, 1}), hosts).value(), 1U);
}

TEST(RankStatements, RanksOfAProcessShareTheBlocksOfTheirGpu) {
  std::vector<RankStatement> statements = statements_of({9, 9});
  statements[1].gpu = statements[0].gpu;
  EXPECT_EQ(blocks_of(statements, Tiers::flat(2)).value(), 9U) << "processes take turns";
  statements[1].process = statements[0].process;
  EXPECT_EQ(blocks_of(statements, Tiers::flat(2)).value(), 4U);
  statements[0].resident_blocks = statements[1].resident_blocks = 1;
  const Status refused = blocks_of(statements, Tiers::flat(2)).status();
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_NE(refused.text().find("2 ranks of one process share GPU 0"), std::string_view::npos) << refused.text();
  EXPECT_NE(refused.text().find("put fewer ranks on it"), std::string_view::npos) << refused.text();
}

TEST(RankStatements, OnlyRanksOfOneProcessShareAGpuAtTheSameTime) {
  std::vector<RankStatement> statements = statements_of({9, 9, 9});
  statements[1].gpu = statements[0].gpu;
  EXPECT_FALSE(shares_gpu(statements, 0));
  statements[1].process = statements[0].process;
  EXPECT_TRUE(shares_gpu(statements, 0));
  EXPECT_TRUE(shares_gpu(statements, 1));
  EXPECT_FALSE(shares_gpu(statements, 2));
}

}  // namespace
}  // namespace seto

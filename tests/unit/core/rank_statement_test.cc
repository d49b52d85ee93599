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

}  // namespace
}  // namespace seto

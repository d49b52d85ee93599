#include "src/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "src/base/check.h"
#include "src/base/result.h"

namespace seto {
namespace {

TEST(Status, DefaultIsSuccessWithoutText) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.text(), "");
}

TEST(Status, FailureKeepsCodeAndFormattedText) {
  const Status status = failure(Code::timeout, "rank %d did not arrive in %s", 3, "time");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.text(), "rank 3 did not arrive in time");
}

TEST(Status, CopiesShareTheSameFailure) {
  const Status first = failure(Code::aborted, "why");
  const Status second = first;  // NOLINT: the copy is what is tested
  EXPECT_EQ(first.text().data(), second.text().data());
}

TEST(Status, SystemFailureAddsTheReasonOfErrno) {
  errno = ENOENT;
  const Status status = system_failure(Code::unavailable, "cannot open '%s'", "x");
  EXPECT_EQ(status.text(), "cannot open 'x': No such file or directory");
}

TEST(Status, LongTextIsCutNotOverrun) {
  const std::string text(5000, 'x');
  const Status status = failure(Code::internal, "%s", text.c_str());
  EXPECT_LT(status.text().size(), text.size());
  EXPECT_GT(status.text().size(), 1000U);
}

TEST(Status, EveryCodeHasItsOwnName) {
  EXPECT_EQ(name_of(Code::ok), "ok");
  for (int left = 0; left <= static_cast<int>(Code::internal); ++left) {
    EXPECT_NE(name_of(static_cast<Code>(left)), "unknown code");
    for (int right = 0; right < left; ++right) EXPECT_NE(name_of(static_cast<Code>(left)), name_of(static_cast<Code>(right)));
  }
}

Result<int> half(int value) {
  if (value % 2 != 0) return failure(Code::invalid_argument, "%d is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  SETO_ASSIGN(const int halved, half(value));
  return half(halved);
}

Status check_even(int value) {
  SETO_TRY(half(value).status());
  return {};
}

TEST(Result, HoldsAValueOrTheReason) {
  EXPECT_EQ(half(8).value(), 4);
  EXPECT_TRUE(half(8).status().ok());
  EXPECT_EQ(half(7).status().text(), "7 is odd");
}

TEST(Result, AssignAndTryReturnTheFirstFailure) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).status().text(), "3 is odd");
  EXPECT_EQ(quarter(5).status().text(), "5 is odd");
  EXPECT_TRUE(check_even(4).ok());
  EXPECT_EQ(check_even(3).code(), Code::invalid_argument);
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(ResultDeathTest, ValueOfAFailureIsAProgrammingError) { EXPECT_DEATH((void)half(7).value(), "ok\\(\\) does not hold"); }

TEST(ResultDeathTest, SuccessIsNotAFailure) { EXPECT_DEATH((void)Result<int>(Status()), "does not hold"); }

TEST(CheckDeathTest, PrintsConditionAndPlace) {
  EXPECT_DEATH(SETO_CHECK(1 + 1 == 3), "1 \\+ 1 == 3 does not hold \\(.*status_test.cc:[0-9]+\\)");
}

TEST(Check, HoldingConditionIsEvaluatedOnce) {
  int evaluations = 0;
  SETO_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace seto

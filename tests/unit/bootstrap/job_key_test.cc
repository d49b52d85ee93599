#include "src/bootstrap/job_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace seto {
namespace {

using ::testing::HasSubstr;

const std::optional<Secret> kNone;
const std::optional<Secret> kSesame = Secret::of_text("open sesame");
const std::optional<Secret> kBarley = Secret::of_text("open barley");

std::string text_of(const std::vector<std::optional<Secret>>& secrets) {
  std::vector<std::string> checks;
  for (const std::optional<Secret>& one : secrets) checks.push_back(secret_check(one, 7));
  return std::string(check_same_secret(checks).text());
}

TEST(JobKey, NeedsTheKeyAndTheSecret) {
  const Secret key = Secret::of_text("proposed by rank 0");
  const Secret both = with_user_secret(key, kSesame);
  EXPECT_TRUE(equal(with_user_secret(key, kNone), key));
  EXPECT_TRUE(equal(with_user_secret(key, Secret::of_text("open sesame")), both));
  EXPECT_FALSE(equal(both, key));
  EXPECT_FALSE(equal(both, *kSesame));
  EXPECT_FALSE(equal(with_user_secret(key, kBarley), both));
  EXPECT_FALSE(equal(with_user_secret(Secret::of_text("another"), kSesame), both));
}

TEST(JobKey, ACheckServesOneAttemptAndIsNoKey) {
  EXPECT_EQ(secret_check(kNone, 1), "");
  EXPECT_NE(secret_check(kSesame, 1), secret_check(kSesame, 2));
  EXPECT_NE(secret_check(kSesame, 1), kSesame->bytes());
}

TEST(JobKey, RanksThatDisagreeAreNamed) {
  EXPECT_EQ(text_of({kNone, kNone, kNone}), "");
  EXPECT_EQ(text_of({kSesame, kSesame}), "");
  EXPECT_THAT(text_of({kNone, kSesame, kSesame}), HasSubstr("rank 0 has no secret, but ranks 1 and 2 have one: set SETO_SECRET"));
  EXPECT_THAT(text_of({kSesame, kNone, kNone}), HasSubstr("ranks 1 and 2 have no secret, but rank 0 has one"));
  EXPECT_THAT(text_of({kSesame, kBarley, kSesame}), HasSubstr("rank 1 has another secret than rank 0: set SETO_SECRET_FILE"));
}

}  // namespace
}  // namespace seto

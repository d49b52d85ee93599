// The custom operations of one communicator: numbers, reuse, limits.

#include "src/api/support/premul_sums.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "include/seto/seto.h"
#include "tests/support/seed.h"

namespace seto::api {
namespace {

float scalar_of(const PremulSums& sums, int op) {
  const PremulSums::Entry* const entry = sums.find(op);
  float value = 0;
  if (entry != nullptr) std::memcpy(&value, entry->scalar, sizeof value);
  return value;
}

TEST(PremulSums, AreNumberedBehindTheBuiltInOperations) {
  PremulSums sums;
  const float scalar = 2;
  EXPECT_EQ(sums.add(&scalar, DataType::float32).value(), static_cast<int>(setoNumOps));
  EXPECT_EQ(sums.add(&scalar, DataType::float32).value(), static_cast<int>(setoNumOps) + 1);
}

TEST(PremulSums, KeepTheScalarInTheAccumulatorType) {
  PremulSums sums;
  const std::uint16_t half = 0x4200;  // 3 in fp16
  const int op = sums.add(&half, DataType::float16).value();
  EXPECT_EQ(sums.find(op)->type, DataType::float16);
  EXPECT_EQ(scalar_of(sums, op), 3.0F);
}

TEST(PremulSums, AreFoundOnlyWhileTheyLive) {
  PremulSums sums;
  const float scalar = 2;
  const int op = sums.add(&scalar, DataType::float32).value();
  EXPECT_NE(sums.find(op), nullptr);
  for (const int other : {-1, 0, static_cast<int>(setoSum), op + 1, static_cast<int>(setoBitAnd), static_cast<int>(setoMaxRedOp),
                          std::numeric_limits<int>::min()})
    EXPECT_EQ(sums.find(other), nullptr) << other;
  EXPECT_TRUE(sums.remove(op).ok());
  EXPECT_EQ(sums.find(op), nullptr);
}

TEST(PremulSums, RefuseToRemoveWhatIsNotTheirs) {
  PremulSums sums;
  const float scalar = 2;
  const int op = sums.add(&scalar, DataType::float32).value();
  EXPECT_EQ(sums.remove(op + 1).text(), "op: " + std::to_string(op + 1) + " is not a custom operation of this communicator");
  EXPECT_TRUE(sums.remove(op).ok());
  EXPECT_EQ(sums.remove(op).code(), Code::invalid_argument) << "destroyed twice";
  EXPECT_EQ(sums.remove(static_cast<int>(setoSum)).code(), Code::invalid_argument) << "built in";
}

TEST(PremulSums, HaveALimitAndAreUsableAgainBelowIt) {
  PremulSums sums;
  const float scalar = 2;
  int last = 0;
  for (int made = 0; made < 65'536; ++made) last = sums.add(&scalar, DataType::float32).value();
  const auto full = sums.add(&scalar, DataType::float32);
  EXPECT_EQ(full.status().code(), Code::invalid_usage);
  EXPECT_EQ(full.status().text(), "op: a communicator has room for 65536 custom operations; destroy those that are done");
  EXPECT_TRUE(sums.remove(last).ok());
  EXPECT_EQ(sums.add(&scalar, DataType::float32).value(), last);
}

// A number that is used again must never be one that lives, and each operation keeps its own scalar.
TEST(PremulSums, NeverShareANumber) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  PremulSums sums;
  std::map<int, float> living;
  for (int round = 0; round < 5000; ++round) {
    if (living.empty() || random() % 2 == 0) {
      const auto scalar = static_cast<float>(round);
      const int op = sums.add(&scalar, DataType::float32).value();
      ASSERT_TRUE(living.emplace(op, scalar).second) << op << " lives already";
    } else {
      const auto one = std::next(living.begin(), static_cast<std::ptrdiff_t>(random() % living.size()));
      ASSERT_TRUE(sums.remove(one->first).ok());
      living.erase(one);
    }
  }
  for (const auto& [op, scalar] : living) EXPECT_EQ(scalar_of(sums, op), scalar);
}

}  // namespace
}  // namespace seto::api

#include "src/base/types.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace seto {
namespace {

DataType type_at(int index) { return static_cast<DataType>(index); }

TEST(DataTypes, SizesAreThoseOfTheCApi) {
  constexpr std::size_t kSizes[kDataTypeCount] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  for (int index = 0; index < kDataTypeCount; ++index) EXPECT_EQ(size_of(type_at(index)), kSizes[index]) << index;
}

TEST(DataTypes, OnlyTheFirstSixAreIntegers) {
  for (int index = 0; index < kDataTypeCount; ++index) EXPECT_EQ(is_integer(type_at(index)), index < 6) << index;
}

TEST(DataTypes, NarrowFloatsAccumulateInAWiderType) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2}) {
    EXPECT_FALSE(accumulates_in_itself(type)) << name_of(type);
  }
  for (const DataType type : {DataType::float32, DataType::float64, DataType::int8, DataType::uint64}) {
    EXPECT_TRUE(accumulates_in_itself(type)) << name_of(type);
  }
}

TEST(Names, AreDistinctAndNotEmpty) {
  std::set<std::string_view> names;
  for (int index = 0; index < kDataTypeCount; ++index) names.insert(name_of(type_at(index)));
  for (int index = 0; index < kReduceOpCount; ++index) names.insert(name_of(static_cast<ReduceOp>(index)));
  for (int index = 0; index < kCollectiveCount; ++index) names.insert(name_of(static_cast<Collective>(index)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kDataTypeCount + kReduceOpCount + kCollectiveCount));
  EXPECT_FALSE(names.contains(""));
}

TEST(Names, LastNameOfEachTableIsRight) {
  EXPECT_EQ(name_of(DataType::float8e5m2), "fp8_e5m2");
  EXPECT_EQ(name_of(ReduceOp::premul_sum), "premulsum");
  EXPECT_EQ(name_of(ReduceOp::max), "max");
  EXPECT_EQ(name_of(Collective::barrier), "barrier");
}

}  // namespace
}  // namespace seto

// A scalar of a narrow float as its accumulator, against the values that the formats define.

#include "src/core/call/scalar_widening.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "src/core/call/collective_call.h"

namespace seto {
namespace {

float widened(std::uint32_t bits, DataType type) {
  std::array<unsigned char, 8> accumulator{};
  widen(&bits, type, accumulator.data());
  float value = 0;
  std::memcpy(&value, accumulator.data(), sizeof value);
  return value;
}

struct Known {
  DataType type;
  std::uint32_t bits;
  float value;
};

// One, the smallest denormal, the largest denormal, the smallest normal, the largest finite number of each format.
constexpr Known kKnown[] = {
    {DataType::float16, 0x3c00, 1.0F},         {DataType::float16, 0x0001, 0x1p-24F},    {DataType::float16, 0x03ff, 0x3ffp-24F},
    {DataType::float16, 0x0400, 0x1p-14F},     {DataType::float16, 0x7bff, 65504.0F},    {DataType::bfloat16, 0x3f80, 1.0F},
    {DataType::bfloat16, 0x0001, 0x1p-133F},   {DataType::bfloat16, 0x007f, 0x7fp-133F}, {DataType::bfloat16, 0x0080, 0x1p-126F},
    {DataType::bfloat16, 0x7f7f, 0x1.fep127F}, {DataType::float8e4m3, 0x38, 1.0F},       {DataType::float8e4m3, 0x01, 0x1p-9F},
    {DataType::float8e4m3, 0x07, 0x7p-9F},     {DataType::float8e4m3, 0x08, 0x1p-6F},    {DataType::float8e4m3, 0x7e, 448.0F},
    {DataType::float8e5m2, 0x3c, 1.0F},        {DataType::float8e5m2, 0x01, 0x1p-16F},   {DataType::float8e5m2, 0x03, 0x3p-16F},
    {DataType::float8e5m2, 0x04, 0x1p-14F},    {DataType::float8e5m2, 0x7b, 57344.0F},
};

int bits_of(DataType type) { return static_cast<int>(size_of(type)) * 8; }

TEST(Widen, GivesTheValueOfEachKindOfNumber) {
  for (const Known& known : kKnown) {
    EXPECT_EQ(widened(known.bits, known.type), known.value) << name_of(known.type) << std::hex << " 0x" << known.bits;
    const std::uint32_t sign = 1U << (bits_of(known.type) - 1);
    EXPECT_EQ(widened(known.bits | sign, known.type), -known.value);
  }
}

TEST(Widen, KeepsTheSignOfZero) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2}) {
    EXPECT_EQ(widened(0, type), 0.0F);
    EXPECT_FALSE(std::signbit(widened(0, type)));
    EXPECT_TRUE(std::signbit(widened(1U << (bits_of(type) - 1), type))) << name_of(type);
  }
}

TEST(Widen, KeepsInfinitiesWhereTheFormatHasThem) {
  EXPECT_EQ(widened(0x7c00, DataType::float16), HUGE_VALF);
  EXPECT_EQ(widened(0xfc00, DataType::float16), -HUGE_VALF);
  EXPECT_EQ(widened(0x7f80, DataType::bfloat16), HUGE_VALF);
  EXPECT_EQ(widened(0x7c, DataType::float8e5m2), HUGE_VALF);
  EXPECT_EQ(widened(0x78, DataType::float8e4m3), 256.0F) << "e4m3 uses that exponent for numbers";
}

TEST(Widen, KeepsNaN) {
  for (const auto& [type, bits] : {std::pair{DataType::float16, 0x7c01U},
                                   {DataType::float16, 0xffffU},
                                   {DataType::bfloat16, 0x7f81U},
                                   {DataType::float8e4m3, 0x7fU},
                                   {DataType::float8e4m3, 0xffU},
                                   {DataType::float8e5m2, 0x7dU}})
    EXPECT_TRUE(std::isnan(widened(bits, type))) << name_of(type) << std::hex << " 0x" << bits;
}

// Positive codes of a binary format are in the order of their values: no code is decoded to the place of another.
TEST(Widen, IsMonotonic) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2}) {
    float last = -1;
    for (std::uint32_t bits = 0; bits < 1U << (bits_of(type) - 1); ++bits) {
      const float value = widened(bits, type);
      if (std::isnan(value)) break;
      ASSERT_GT(value, last) << name_of(type) << std::hex << " 0x" << bits;
      last = value;
    }
  }
}

TEST(Widen, CopiesTypesThatAccumulateInThemselvesAndNothingBeyond) {
  for (int number = 0; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    std::array<unsigned char, 8> value = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x08};
    std::array<unsigned char, 8> accumulator{};
    accumulator.fill(0xee);
    widen(value.data(), type, accumulator.data());
    if (accumulates_in_itself(type)) {
      EXPECT_EQ(std::memcmp(value.data(), accumulator.data(), size_of(type)), 0) << name_of(type);
    }
    for (std::size_t byte = scalar_size(type); byte < 8; ++byte) EXPECT_EQ(accumulator.at(byte), 0xee) << name_of(type);
  }
}

}  // namespace
}  // namespace seto

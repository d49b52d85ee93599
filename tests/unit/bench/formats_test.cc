#include "bench/common/formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace seto::bench {
namespace {

constexpr setoDataType_t kNarrow[] = {setoFloat16, setoBfloat16, setoFloat8e4m3, setoFloat8e5m2};

TEST(Formats, EveryFiniteValueSurvives) {
  for (const setoDataType_t type : kNarrow) {
    const std::uint64_t count = type == setoFloat16 || type == setoBfloat16 ? 1U << 16 : 1U << 8;
    for (std::uint64_t bits = 0; bits < count; ++bits) {
      const double value = decode_float(type, bits);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode_float(type, value), bits) << "type " << type;
    }
  }
}

TEST(Formats, KnownValues) {
  EXPECT_EQ(decode_float(setoFloat8e4m3, 0x7e), 448.0);
  EXPECT_TRUE(std::isnan(decode_float(setoFloat8e4m3, 0x7f)));
  EXPECT_EQ(decode_float(setoFloat8e4m3, 0x01), std::ldexp(1.0, -9));
  EXPECT_EQ(decode_float(setoFloat8e5m2, 0x7b), 57344.0);
  EXPECT_TRUE(std::isinf(decode_float(setoFloat8e5m2, 0x7c)));
  EXPECT_EQ(decode_float(setoFloat16, 0x3c00), 1.0);
  EXPECT_EQ(decode_float(setoFloat16, 0x7bff), 65504.0);
  EXPECT_EQ(encode_float(setoFloat32, 1.0), 0x3f800000U);
  EXPECT_EQ(encode_float(setoBfloat16, -2.0), 0xc000U);
}

TEST(Formats, RoundsToNearestEven) {
  // A value between two representable ones: down to even, up to even, and not in the middle.
  EXPECT_EQ(encode_float(setoFloat16, 2049.0), encode_float(setoFloat16, 2048.0));
  EXPECT_EQ(encode_float(setoFloat16, 2051.0), encode_float(setoFloat16, 2052.0));
  EXPECT_EQ(encode_float(setoFloat8e4m3, 17.1), encode_float(setoFloat8e4m3, 18.0));
  // A significand that rounds up to the next power of two.
  EXPECT_EQ(decode_float(setoFloat8e5m2, encode_float(setoFloat8e5m2, 1.99)), 2.0);
}

TEST(Formats, OverflowGivesInfinityOrNan) {
  EXPECT_TRUE(std::isinf(decode_float(setoFloat16, encode_float(setoFloat16, 1e6))));
  EXPECT_TRUE(std::isnan(decode_float(setoFloat8e4m3, encode_float(setoFloat8e4m3, 1e6))));
  EXPECT_TRUE(std::isnan(decode_float(setoFloat16, encode_float(setoFloat16, std::numeric_limits<double>::quiet_NaN()))));
}

}  // namespace
}  // namespace seto::bench

#include "bench/common/sizes.h"

#include <gtest/gtest.h>

#include "bench/common/program.h"

namespace seto::bench {
namespace {

TEST(Sizes, ParsesBinaryUnits) {
  EXPECT_EQ(parse_size("8"), 8U);
  EXPECT_EQ(parse_size("64K"), 65536U);
  EXPECT_EQ(parse_size("64kB"), 65536U);
  EXPECT_EQ(parse_size("1.5M"), 1572864U);
  EXPECT_EQ(parse_size("2G"), 2147483648U);
  EXPECT_EQ(parse_size("0"), 0U);
}

TEST(Sizes, RejectsInvalidSizes) {
  for (const char* text : {"", "K", "-8", "8Q", "1e3", "0.3", "1.2.3", "8 K", "0x10", "9999999999G"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Sizes, TextIsExact) {
  EXPECT_EQ(size_text(65536), "64K");
  EXPECT_EQ(size_text(65537), "65537");
  EXPECT_EQ(size_text(0), "0");
  for (const std::uint64_t size : {1ULL, 1000ULL, 1ULL << 20, 3ULL << 30}) EXPECT_EQ(parse_size(size_text(size)), size);
}

TEST(Sizes, RangesMultiplyOrAdd) {
  EXPECT_EQ(sizes_of({.min = 8, .max = 64, .step = 1, .factor = 2}), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(sizes_of({.min = 8, .max = 20, .step = 5, .factor = 1}), (std::vector<std::uint64_t>{8, 13, 18}));
  EXPECT_EQ(sizes_of({.min = 0, .max = 4, .step = 1, .factor = 2}), (std::vector<std::uint64_t>{0, 1, 2, 4}));
  EXPECT_EQ(sizes_of({.min = 8, .max = 8, .step = 1, .factor = 1}), (std::vector<std::uint64_t>{8}));
}

TEST(Sizes, PartsAreWholeSixteenBytes) {
  EXPECT_EQ(part_count(1024, 4, 4), 256U);
  EXPECT_EQ(part_count(1023, 4, 4), 252U);
  EXPECT_EQ(part_count(3, 4, 2), 0U);
  EXPECT_EQ(part_count(100, 1, 3), 32U);
  EXPECT_EQ(part_count(100, 8, 3), 32U);
}

TEST(Layouts, BuffersAndStrides) {
  const Layout gather = gather_layout(1024, 4, 4);
  EXPECT_EQ(gather.send_count, 256U);
  EXPECT_EQ(gather.receive_count, 1024U);
  EXPECT_EQ(gather.send_stride, 256U);
  EXPECT_EQ(gather.receive_stride, 0U);
  const Layout scatter = scatter_layout(1024, 4, 4);
  EXPECT_EQ(scatter.send_count, 1024U);
  EXPECT_EQ(scatter.receive_count, 256U);
  EXPECT_EQ(scatter.receive_stride, 256U);
  EXPECT_EQ(exchange_layout(1024, 4, 4).count, 256U);
  EXPECT_EQ(whole_layout(1023, 4, 4).count, 1023U);
}

TEST(Layouts, BytesAndBusFactors) {
  EXPECT_DOUBLE_EQ(whole_bytes(whole_layout(1000, 4, 4), 4, 4), 4000);
  EXPECT_DOUBLE_EQ(parts_bytes(gather_layout(1024, 4, 4), 4, 4), 4096);
  EXPECT_DOUBLE_EQ(factor_twice_others(4), 1.5);
  EXPECT_DOUBLE_EQ(factor_others(4), 0.75);
  EXPECT_DOUBLE_EQ(factor_others(1), 0);
  EXPECT_DOUBLE_EQ(factor_one(9), 1);
}

}  // namespace
}  // namespace seto::bench

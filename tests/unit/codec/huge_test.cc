// More numbers than 32 bits can count: the numbers after the 2^32nd are encoded like numbers alone.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "src/codec/codec.h"
#include "tests/support/repeated_memory.h"

namespace seto {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 24;  // numbers
constexpr std::size_t kCount = (std::size_t{1} << 32) + 300;

class HugeCounts : public ::testing::TestWithParam<Codec> {};

TEST_P(HugeCounts, EncodeAndDecodeToTheLastNumber) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: 16 GiB of addresses take minutes under a sanitizer";
#endif
  const Codec codec = GetParam();
  const seto::testing::RepeatedMemory numbers(kPiece * sizeof(float), kCount * sizeof(float));
  auto* const first = reinterpret_cast<float*>(numbers.data());
  for (std::size_t i = 0; i < kPiece; ++i) first[i] = static_cast<float>(i % 1009) * 0.37F - 150;
  const std::vector<float> values(first, first + kPiece);

  const std::size_t of_piece = encoded_size(codec, kPiece);
  const seto::testing::RepeatedMemory bytes(of_piece, encoded_size(codec, kCount));
  const EncodeFunction encode = encode_function(codec, DataType::float32, Rounding::nearest);
  encode({numbers.data(), bytes.data(), kCount, Store::cached, 0, 0});
  // Written last: the 300 numbers after the last whole piece.
  std::vector<std::byte> expected(of_piece);
  encode({values.data(), expected.data(), kPiece, Store::cached, 0, 0});
  encode({values.data(), expected.data(), 300, Store::cached, 0, 0});
  ASSERT_EQ(std::memcmp(bytes.data(), expected.data(), of_piece), 0);

  const DecodeFunction decode = decode_function(codec, DataType::float32);
  encode({numbers.data(), bytes.data(), kPiece, Store::cached, 0, 0});
  decode({bytes.data(), nullptr, numbers.data(), kCount, Store::cached});
  std::vector<float> decoded(kPiece);
  encode({values.data(), expected.data(), kPiece, Store::cached, 0, 0});
  decode({expected.data(), nullptr, decoded.data(), kPiece, Store::cached});
  // Each number is decoded independently, except for the header of its block, which a short block has too.
  EXPECT_EQ(std::memcmp(numbers.data(), decoded.data(), kPiece * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(All, HugeCounts, ::testing::Values(Codec::fp16, Codec::int8, Codec::int4),
                         [](const auto& one) { return std::string(facts_of(one.param).name); });

}  // namespace
}  // namespace seto

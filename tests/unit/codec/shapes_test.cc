// Addresses, stores, slices, surrounding bytes, and threads that flush denormals to zero: none of them changes a bit.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "src/codec/codec.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/unit/codec/numbers.h"
#include "tests/unit/device/instruction_sets.h"

namespace seto::codec_test {
namespace {

using reference::Bytes;
using Parameter = std::tuple<std::int64_t, Codec, DataType>;

constexpr std::size_t kMargin = 128;
constexpr std::uint8_t kUntouched = 0xA5;

// Bytes at a given offset from a cache line, with a margin that must not change.
struct ReceiveBuffers {
  std::vector<std::uint8_t> memory;
  std::size_t offset;
  std::size_t size;

  ReceiveBuffers(std::size_t of_size, std::size_t from_line) : memory(of_size + 3 * kMargin, kUntouched), size(of_size) {
    const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    offset = kMargin + (64 - misalignment) % 64 + from_line;
  }
  std::uint8_t* data() { return memory.data() + offset; }
  [[nodiscard]] Bytes bytes() const {
    return {memory.begin() + static_cast<std::ptrdiff_t>(offset), memory.begin() + static_cast<std::ptrdiff_t>(offset + size)};
  }
  [[nodiscard]] bool surroundings_untouched() const {
    for (std::size_t i = 0; i < memory.size(); ++i)
      if ((i < offset || i >= offset + size) && memory[i] != kUntouched) return false;
    return true;
  }
};

class CodecShape : public ::testing::TestWithParam<Parameter> {
 protected:
  Bytes encoded(const Numbers& numbers) const {
    Bytes bytes(encoded_size(codec_, numbers.count));
    encode_function(codec_, type_, Rounding::nearest)({numbers.data(), bytes.data(), numbers.count, Store::cached, 0, 0});
    return bytes;
  }

  OnlySet set_{std::get<0>(GetParam())};
  Codec codec_ = std::get<1>(GetParam());
  DataType type_ = std::get<2>(GetParam());
  std::uint64_t seed_ = ::seto::testing::chosen_seed();
  std::mt19937_64 random_{seed_};
};

TEST_P(CodecShape, any_address_and_store) {
  for (std::uint64_t round = 0; round < 150 / support::kLess; ++round) {
    const std::size_t count = random_() % 3 == 0 ? random_() % 12000 : random_() % 2000;
    const Numbers numbers = numbers_of(static_cast<Kind>(random_() % kKinds), type_, count, random_);
    const Store store = random_() % 3 == 0 ? Store::cached : Store::past_cache;
    const Bytes expected = encoded(numbers);
    const auto element = size_of(type_);

    ReceiveBuffers source(numbers.bytes.size(), random_() % (64 / element) * element);
    std::copy(numbers.bytes.begin(), numbers.bytes.end(), source.data());
    ReceiveBuffers bytes(expected.size(), random_() % 64);
    encode_function(codec_, type_, Rounding::nearest)({source.data(), bytes.data(), count, store, 0, 0});
    ASSERT_EQ(bytes.bytes(), expected) << count << " elements, seed " << seed_;
    ASSERT_TRUE(bytes.surroundings_untouched() && source.surroundings_untouched()) << count << " elements, seed " << seed_;

    Numbers decoded(type_, count);
    decode_function(codec_, type_)({expected.data(), nullptr, decoded.data(), count, Store::cached});
    ReceiveBuffers target(numbers.bytes.size(), random_() % (64 / element) * element);
    decode_function(codec_, type_)({bytes.data(), nullptr, target.data(), count, store});
    ASSERT_EQ(target.bytes(), decoded.bytes) << count << " elements, seed " << seed_;

    accumulate_function(codec_, type_)({bytes.data(), source.data(), target.data(), count, store});
    accumulate_function(codec_, type_)({bytes.data(), source.data(), source.data(), count, store});
    ASSERT_EQ(target.bytes(), source.bytes()) << "accumulated, " << count << " elements, seed " << seed_;
    ASSERT_TRUE(target.surroundings_untouched() && source.surroundings_untouched()) << count << " elements, seed " << seed_;
  }
}

TEST_P(CodecShape, slices_at_each_block_boundary) {
  const std::size_t block = facts_of(codec_).block;
  const Numbers numbers = numbers_of(Kind::huge_range, type_, 9 * block + 31, random_);
  const Bytes whole = encoded(numbers);
  Numbers decoded(type_, numbers.count);
  decode_function(codec_, type_)({whole.data(), nullptr, decoded.data(), numbers.count, Store::cached});
  for (std::size_t from = 0; from < numbers.count; from += block) {
    for (std::size_t to = from + block; to < numbers.count + block; to += block) {
      const std::size_t count = std::min(to, numbers.count) - from;
      Numbers slice(type_, count);
      std::memcpy(slice.data(), numbers.bytes.data() + from * size_of(type_), slice.bytes.size());
      const Bytes bytes = encoded(slice);
      ASSERT_EQ(std::memcmp(bytes.data(), whole.data() + encoded_size(codec_, from), bytes.size()), 0) << from << " to " << to;
      decode_function(codec_, type_)({bytes.data(), nullptr, slice.data(), count, Store::cached});
      ASSERT_EQ(std::memcmp(slice.data(), decoded.bytes.data() + from * size_of(type_), slice.bytes.size()), 0)
          << from << " to " << to;
    }
  }
}

#if defined(__x86_64__)
TEST_P(CodecShape, flushing_of_denormals_changes_nothing) {
  constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
  for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
    for (std::uint64_t round = 0; round < 10 / support::kLess; ++round) {
      for (int kind = 0; kind < kKinds; ++kind) {
        const Numbers numbers = numbers_of(static_cast<Kind>(kind), type_, 1000, random_);
        Bytes bytes(encoded_size(codec_, 1000));
        Bytes flushed_bytes(bytes.size());
        Numbers decoded(type_, 1000);
        Numbers flushed(type_, 1000);
        const auto encode = encode_function(codec_, type_, rounding);
        const auto decode = decode_function(codec_, type_);
        encode({numbers.data(), bytes.data(), 1000, Store::cached, 1, 0});
        decode({bytes.data(), nullptr, decoded.data(), 1000, Store::cached});
        const unsigned before = _mm_getcsr();
        _mm_setcsr(before | kFlushAndDenormalsAreZero);
        encode({numbers.data(), flushed_bytes.data(), 1000, Store::cached, 1, 0});
        decode({bytes.data(), nullptr, flushed.data(), 1000, Store::cached});
        _mm_setcsr(before);
        ASSERT_EQ(bytes, flushed_bytes) << "kind " << kind << ", seed " << seed_;
        ASSERT_EQ(decoded.bytes, flushed.bytes) << "kind " << kind << ", seed " << seed_;
      }
    }
  }
}
#endif

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const std::int64_t set : instruction_sets()) {
    for (int codec = 0; codec < kCodecCount; ++codec) {
      for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16})
        if (encodes(static_cast<Codec>(codec), type)) all.emplace_back(set, static_cast<Codec>(codec), type);
    }
  }
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" + std::string(facts_of(std::get<1>(info.param)).name) + "_" +
         std::string(name_of(std::get<2>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, CodecShape, ::testing::ValuesIn(parameters()), parameter_name);

}  // namespace
}  // namespace seto::codec_test

// Encoded sums through the C API: the same bits on every rank, within the stated bound, and only where a codec was permitted.
#include "src/codec/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/ranks.h"
#include "tests/support/repeated_memory.h"
#include "tests/support/slow_links.h"

namespace seto::testing {
namespace {

// A value that no codec represents exactly.
float element(int rank, std::size_t index) {
  return std::sin(static_cast<float>(index) * 0.37F + static_cast<float>(rank)) * (1.0F + static_cast<float>(index % 5));
}
constexpr double kLargest = 5;

std::vector<float> own(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

double exact(int ranks, std::size_t index) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += static_cast<double>(element(rank, index));
  return sum;
}

// The bound for contributions and sum, each encoded once at most.
double bound_of(Codec codec, int ranks) {
  const auto once = [&](double largest) { return error_bound(codec, DataType::float32, Rounding::nearest, largest, largest); };
  return ranks * once(kLargest) + once(ranks * kLargest) + 1e-5;
}

std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3U;
  }
  return hash;
}

// Each rank publishes its values and checks whether the others have the same.
void expect_same_bits(const Seat& seat, const std::vector<float>& values, std::uint64_t round) {
  seat.board.figure[static_cast<std::size_t>(seat.rank)] = hash_of(values);
  ASSERT_TRUE(seat.meet(2 * round + 1));
  EXPECT_EQ(seat.board.figure[0].load(), hash_of(values)) << "rank " << seat.rank << " has other bits than rank 0";
  ASSERT_TRUE(seat.meet(2 * round + 2));
}

bool is_exact(const std::vector<float>& values, int ranks) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::abs(static_cast<double>(values[i]) - exact(ranks, i)) > 1e-5) return false;
  return true;
}

setoComm_t join(const Seat& seat, const char* codec) {
  setoConfig_t config = config_of_test();
  config.codec = codec;
  return seat.join(config);
}

std::string dump_of(setoComm_t comm) {
  std::string text(64 << 10, '\0');
  EXPECT_EQ(setoCommDump(comm, setoFormatText, text.data(), text.size(), nullptr), setoSuccess);
  return text.c_str();
}

class CodedSums : public ::testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(CodedSums, AreTheSameBitsOnEveryRankAndWithinTheBound) {
  const auto [ranks, name] = GetParam();
  const SlowLinks slow;
  run_ranks(Kind::processes, ranks, [name = name](const Seat& seat) {
    const setoComm_t comm = join(seat, name);
    ASSERT_NE(comm, nullptr);
    const double bound = bound_of(parse_codec(name).value(), seat.ranks);
    std::uint64_t round = 0;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1'000}, std::size_t{300'000}}) {
      std::vector<float> values = own(seat.rank, count);
      const Answer done = answer(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr));
      ASSERT_EQ(done.code, setoSuccess) << done;
      for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(values[i], exact(seat.ranks, i), bound) << i;
      // A single number is the scale of its block, so it is exact.
      EXPECT_TRUE(count <= 1 || !is_exact(values, seat.ranks)) << "it was not encoded: " << count;
      expect_same_bits(seat, values, round++);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, CodedSums,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values("fp16", "bf16", "e4m3", "e5m2", "int8", "int4")),
                         [](const auto& one) {
                           return std::to_string(std::get<0>(one.param)) + "RanksIn_" + std::get<1>(one.param);
                         });

TEST(Codec, OfACallOverridesTheCommunicators) {
  const SlowLinks slow;
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = join(seat, "int8");
    ASSERT_NE(comm, nullptr);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    const auto summed = [&] {
      std::vector<float> values = own(seat.rank, 5'000);
      const Answer done =
          answer(setoAllReduceConfig(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(done.code, setoSuccess) << done;
      return values;
    };
    const std::vector<float> in_int8 = summed();
    ASSERT_EQ(setoCodecId("none", &call.codec), setoSuccess);
    EXPECT_TRUE(is_exact(summed(), seat.ranks));
    ASSERT_EQ(setoCodecId("fp16", &call.codec), setoSuccess);
    const std::vector<float> in_fp16 = summed();
    EXPECT_FALSE(is_exact(in_fp16, seat.ranks));
    const std::string recorded = dump_of(comm);
    for (const char* const used : {" in int8, ended", " in fp16, ended"})
      EXPECT_NE(recorded.find(used), std::string::npos) << recorded;
    EXPECT_NE(in_fp16, in_int8);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// A codec is permitted for sums of floats only.
TEST(Codec, DoesNotAffectOtherCallsThanSumsOfFloats) {
  const SlowLinks slow;
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    const setoComm_t comm = join(seat, "int4");
    ASSERT_NE(comm, nullptr);
    std::vector<float> values = own(seat.rank, 3'000);
    ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoMax, comm, nullptr), setoSuccess);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], std::max({element(0, i), element(1, i), element(2, i)}));
    std::vector<int> numbers(3'000, 1'000'003 + seat.rank);
    ASSERT_EQ(setoAllReduce(numbers.data(), numbers.data(), numbers.size(), setoInt32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_EQ(numbers, std::vector<int>(3'000, 3'000'012));
    std::vector<float> all(3 * 3'000);
    values = own(seat.rank, 3'000);
    ASSERT_EQ(setoAllGather(values.data(), all.data(), values.size(), setoFloat32, comm, nullptr), setoSuccess);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], element(static_cast<int>(i / 3'000), i % 3'000));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(Codec, OfTheWorldTierIsNotUsedWithinASite) {
  const SlowLinks slow;
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    setenv("SETO_CODEC", "world=int4", 1);
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values = own(seat.rank, 5'000);
    ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_TRUE(is_exact(values, seat.ranks));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(Codec, ThatDiffersBetweenCommunicatorConfigsIsNamed) {
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.codec = seat.rank == 2 ? nullptr : seat.rank == 1 ? "int8" : "fp16";
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
    EXPECT_EQ(refused.code, setoInvalidUsage) << refused;
    EXPECT_TRUE(refused.says("SETO_CODEC is 'fp16' on rank 0 and 'int8' on rank 1")) << refused;
    seat.meet(1);  // the process that made the id stays until all ranks have failed
  });
}

// Also if no rank would have encoded, because the next call may be one that they encode.
TEST(Codec, ThatDiffersBetweenCallsIsNamed) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5'000}})
    run_ranks(Kind::processes, 2, [&](const Seat& seat) {
      const setoComm_t comm = seat.join();
      ASSERT_NE(comm, nullptr);
      setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
      ASSERT_EQ(setoCodecId(seat.rank == 0 ? "fp16" : "int8", &call.codec), setoSuccess);
      std::vector<float> values = own(seat.rank, count);
      const Answer heard =
          answer(setoAllReduceConfig(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(heard.code, setoRemoteError) << heard;
      EXPECT_TRUE(heard.says("sum, codec fp16") && heard.says("sum, codec int8")) << heard;
      ASSERT_TRUE(seat.meet(1));
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
}

// A codec in the config of a call must apply to that call.
TEST(Codec, ThatDoesNotApplyToACallIsRejected) {
  const SlowLinks slow;
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_EQ(setoCodecId("int8", &call.codec), setoSuccess);
    std::vector<float> values = own(seat.rank, 3'000);
    std::vector<int> numbers(3'000, seat.rank);
    std::vector<float> all(2 * 3'000);
    for (const Answer& refused :
         {answer(setoAllReduceConfig(values.data(), values.data(), 3'000, setoFloat32, setoMax, comm, nullptr, &call)),
          answer(setoAllReduceConfig(numbers.data(), numbers.data(), 3'000, setoInt32, setoSum, comm, nullptr, &call)),
          answer(setoAllGatherConfig(values.data(), all.data(), 3'000, setoFloat32, comm, nullptr, &call))}) {
      EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
      EXPECT_TRUE(refused.says("requests int8, which accepts only sums of wider floats")) << refused;
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(Codec, ThatIsUnknownIsRejectedWithAllNames) {
  run_ranks(Kind::processes, 1, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    setoComm_t comm = nullptr;
    for (const char* wrong : {"fp15", "moon=fp16", "site=fp16,world=int8"}) {
      config.codec = wrong;
      const Answer refused = answer(setoCommInitRankConfig(&comm, 1, seat.id(), 0, &config));
      EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
      EXPECT_TRUE(refused.says("codec: '")) << refused;
    }
    for (const auto& [variable, value, meant] :
         {std::tuple{"SETO_CODEC", "fp15", "did you mean fp16"}, std::tuple{"SETO_ALGORITHM", "rign", "did you mean ring"}}) {
      setenv(variable, value, 1);
      const Answer refused = answer(setoCommInitRank(&comm, 1, seat.id(), 0));
      unsetenv(variable);
      EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
      EXPECT_TRUE(refused.says(std::string(variable) + ": '" + value + "' is ") && refused.says(meant)) << refused;
    }
  });
}

// More numbers than a signed 32-bit count holds; each rank maps the same 32 MiB repeatedly. Most of the time goes into mapping
// eight gigabytes of addresses.
TEST(Codec, HandlesMoreNumbersThan31BitsCount) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: gigabytes of addresses take minutes under a sanitizer";
#endif
  if (std::getenv("SETO_TRANSPORT") != nullptr) GTEST_SKIP() << "skipped: runs over shared memory only, because it takes long";
  const SlowLinks slow;
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    constexpr std::size_t kPiece = std::size_t{1} << 24;
    constexpr std::size_t kCount = (std::size_t{1} << 31) + 300;
    const setoComm_t comm = join(seat, "int8");
    ASSERT_NE(comm, nullptr);
    const auto bits_of = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
    const auto of_bits = [](std::uint16_t bits) { return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16)); };
    const RepeatedMemory input(kPiece * sizeof(std::uint16_t), kCount * sizeof(std::uint16_t));
    const RepeatedMemory output(kPiece * sizeof(std::uint16_t), kCount * sizeof(std::uint16_t));
    auto* const values = reinterpret_cast<std::uint16_t*>(input.data());
    for (std::size_t i = 0; i < kPiece; ++i) values[i] = bits_of(element(seat.rank, i % 4096));
    const Answer done = answer(setoAllReduce(input.data(), output.data(), kCount, setoBfloat16, setoSum, comm, nullptr));
    ASSERT_EQ(done.code, setoSuccess) << done;
    EXPECT_NE(dump_of(comm).find(" in int8, ended"), std::string::npos) << "it was not encoded";
    const auto* const sums = reinterpret_cast<const std::uint16_t*>(output.data());
    double bound = 0;
    int int8 = 0;
    ASSERT_EQ(setoCodecId("int8", &int8), setoSuccess);
    ASSERT_EQ(setoCodecErrorBound(int8, setoBfloat16, seat.ranks, kLargest, &bound), setoSuccess);
    for (std::size_t i = 0; i < kPiece; ++i) {
      const double right = of_bits(bits_of(element(0, i % 4096))) + of_bits(bits_of(element(1, i % 4096)));
      ASSERT_NEAR(of_bits(sums[i]), right, bound) << i;
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(Codec, BoundsAndSizesAreReturned) {
  run_ranks(Kind::processes, 1, [](const Seat&) {
    int none = 0, int8 = 0;
    ASSERT_EQ(setoCodecId("none", &none), setoSuccess);
    ASSERT_EQ(setoCodecId("int8", &int8), setoSuccess);
    std::size_t size = 0;
    EXPECT_EQ(setoCodecSize(int8, setoFloat32, 512, &size), setoSuccess);
    EXPECT_EQ(size, 520U);
    EXPECT_EQ(setoCodecSize(none, setoFloat64, 512, &size), setoSuccess);
    EXPECT_EQ(size, 4096U);
    constexpr std::size_t kHuge = (std::size_t{1} << 32) + 300;
    EXPECT_EQ(setoCodecSize(int8, setoFloat32, kHuge, &size), setoSuccess);
    EXPECT_EQ(size, kHuge + 4 * (kHuge / 256 + 1));
    double bound = -1;
    EXPECT_EQ(setoCodecErrorBound(none, setoFloat32, 8, 1e6, &bound), setoSuccess);
    EXPECT_EQ(bound, 0);
    EXPECT_EQ(setoCodecErrorBound(int8, setoFloat32, 2, 1, &bound), setoSuccess);
    EXPECT_GT(bound, 2.0 / 254) << "each of two contributions may have an error of half a step";
    EXPECT_LT(bound, 4 * 2.0 / 254 + 0.03);
    for (const Answer& refused :
         {answer(setoCodecSize(99, setoFloat32, 1, &size)), answer(setoCodecSize(int8, setoInt32, 1, &size)),
          answer(setoCodecErrorBound(int8, setoFloat32, 0, 1, &bound)),
          answer(setoCodecErrorBound(int8, setoFloat32, 2, -1, &bound)), answer(setoCodecSize(int8, setoFloat32, 1, nullptr))})
      EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
  });
}

// The squares of such numbers overflow. The report must not show them as kept.
TEST(Codec, CheckReportsLostHugeNumbersAndInfinities) {
  const auto checked = [](const std::vector<double>& values) {
    std::string text(4096, '\0');
    std::size_t size = 0;
    EXPECT_EQ(setoCodecCheck(values.data(), setoFloat64, values.size(), setoFormatText, text.data(), text.size(), &size),
              setoSuccess);
    text.resize(size);
    return text.substr(text.find("\nbf16"), text.find("\ne4m3") - text.find("\nbf16"));
  };
  std::vector<double> values(1'000);
  for (const double scale : {1e300, 1.0, 1e-30, 1e-300}) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (1 + static_cast<double>(i) / 997);
    EXPECT_EQ(checked(values).find("exact"), std::string::npos) << scale << checked(values);
  }
  EXPECT_NE(checked(std::vector<double>(8, 1.5)).find("exact"), std::string::npos);
  std::string text(4096, '\0');
  std::size_t size = 0;
  std::vector<double> mixed(8, 1.5);
  mixed[3] = std::numeric_limits<double>::infinity();
  ASSERT_EQ(setoCodecCheck(mixed.data(), setoFloat64, 8, setoFormatText, text.data(), text.size(), &size), setoSuccess);
  const std::string of_int8 = text.substr(text.find("\nint8"), text.find("\nint4") - text.find("\nint8"));
  EXPECT_EQ(of_int8.find("exact"), std::string::npos) << of_int8;
  EXPECT_NE(of_int8.find("7 finite numbers became NaN"), std::string::npos) << of_int8;
  const std::vector<double> endless(8, std::numeric_limits<double>::infinity());
  ASSERT_EQ(setoCodecCheck(endless.data(), setoFloat64, 8, setoFormatText, text.data(), text.size(), &size), setoSuccess);
  EXPECT_EQ(text.find("exact"), std::string::npos) << text;
  EXPECT_NE(text.find("8 infinities became NaN"), std::string::npos) << text;
}

TEST(Codec, BoundsOfTheLargestNumbersAreFiniteOrInfinite) {
  int fp16 = 0;
  ASSERT_EQ(setoCodecId("fp16", &fp16), setoSuccess);
  double bound = 0;
  constexpr double kMost = std::numeric_limits<double>::max();
  EXPECT_EQ(setoCodecErrorBound(fp16, setoFloat64, 2, kMost, &bound), setoSuccess);
  EXPECT_TRUE(std::isinf(bound)) << bound;
  EXPECT_EQ(setoCodecErrorBound(fp16, setoFloat64, 4, kMost / 64, &bound), setoSuccess);
  EXPECT_TRUE(std::isfinite(bound) && bound > 0 && bound < kMost / 64) << bound;
  EXPECT_EQ(setoCodecErrorBound(fp16, setoFloat32, 2, 1e300, &bound), setoInvalidArgument);
}

}  // namespace
}  // namespace seto::testing

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 1000;

float element(int rank, std::size_t index) { return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 3) % 13); }

std::vector<float> own(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

float sum(std::size_t index) {
  float total = 0;
  for (int rank = 0; rank < kRanks; ++rank) total += element(rank, index);
  return total;
}

std::vector<float> sums(std::size_t begin, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = sum(begin + i);
  return values;
}

SETO_TEST_ALONE(ApiCollectives, all_reduce_out_of_place_and_in_place) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    std::vector<float> mine = own(rank, kCount);
    std::vector<float> all(kCount);
    EXPECT_TRUE(succeeded(setoAllReduce(mine.data(), all.data(), kCount, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(all, sums(0, kCount));
    EXPECT_EQ(mine, own(rank, kCount));
    EXPECT_TRUE(succeeded(setoAllReduce(mine.data(), mine.data(), kCount, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(mine, sums(0, kCount));
  });
}

SETO_TEST_ALONE(ApiCollectives, average_of_integers_truncates_toward_zero) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    const std::vector<std::int32_t> mine{rank == 0 ? -2 : -1, rank + 1, rank == 2 ? 5 : 0};
    std::vector<std::int32_t> all(3);
    EXPECT_TRUE(succeeded(setoAllReduce(mine.data(), all.data(), 3, setoInt32, setoAvg, comm, nullptr)));
    EXPECT_EQ(all, (std::vector<std::int32_t>{-1, 2, 1}));
  });
}

SETO_TEST_ALONE(ApiCollectives, bitwise_operations_of_integers) {
  ThreadRanks ranks(3);
  ranks.each([](setoComm_t comm, int rank) {
    const auto reduced = [&](setoRedOp_t op) {
      std::vector<std::uint32_t> values(100, 0xf0U | 1U << rank);
      EXPECT_TRUE(succeeded(setoAllReduce(values.data(), values.data(), values.size(), setoUint32, op, comm, nullptr)));
      return values;
    };
    EXPECT_EQ(reduced(setoBitAnd), std::vector<std::uint32_t>(100, 0xf0));
    EXPECT_EQ(reduced(setoBitOr), std::vector<std::uint32_t>(100, 0xf7));
    EXPECT_EQ(reduced(setoBitXor), std::vector<std::uint32_t>(100, 0xf7));
    std::vector<float> floats(3, 1);
    EXPECT_TRUE(failed(setoAllReduce(floats.data(), floats.data(), 3, setoFloat32, setoBitOr, comm, nullptr), setoInvalidArgument,
                       "op: bitor takes integers, not float"));
  });
}

SETO_TEST_ALONE(ApiCollectives, premultiplied_sum_uses_each_ranks_own_scalar) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    const std::vector<double> mine{1, 2, 4};
    std::vector<double> all(3);
    double scalar = rank + 1;
    setoRedOp_t op{};
    ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat64, setoScalarHostImmediate, comm)));
    scalar = 1000;  // the scalar was read when the operation was made
    EXPECT_TRUE(succeeded(setoAllReduce(mine.data(), all.data(), 3, setoFloat64, op, comm, nullptr)));
    EXPECT_EQ(all, (std::vector<double>{6, 12, 24}));
    EXPECT_TRUE(succeeded(setoRedOpDestroy(op, comm)));
    EXPECT_TRUE(failed(setoRedOpDestroy(op, comm), setoInvalidArgument, "not a custom operation"));
  });
}

SETO_TEST_ALONE(ApiCollectives, premultiplied_sum_widens_narrow_scalars) {
  ThreadRanks ranks(2);
  struct Narrow {
    setoDataType_t type;
    std::uint16_t half;  // 0.5, in the type under test
    std::uint16_t two;
    std::uint16_t three;
  };
  for (const Narrow& narrow : {Narrow{setoFloat16, 0x3800, 0x4000, 0x4200}, Narrow{setoBfloat16, 0x3f00, 0x4000, 0x4040}}) {
    ranks.each([&](setoComm_t comm, int rank) {
      std::uint16_t scalar = rank == 0 ? narrow.half : narrow.two;
      const std::uint16_t mine = narrow.two;  // 0.5 * 2 + 2 * 2 = 5: half of it is compared with 2.5 below
      std::uint16_t all = 0;
      setoRedOp_t op{};
      ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, narrow.type, setoScalarHostImmediate, comm)));
      EXPECT_TRUE(succeeded(setoAllReduce(&mine, &all, 1, narrow.type, op, comm, nullptr)));
      EXPECT_EQ(all, narrow.type == setoFloat16 ? 0x4500 : 0x40a0);
      EXPECT_TRUE(succeeded(setoRedOpDestroy(op, comm)));
    });
  }
}

SETO_TEST_ALONE(ApiCollectives, rooted_ones_need_no_buffer_elsewhere) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    for (int root = 0; root < kRanks; ++root) {
      const std::vector<float> mine = own(rank, kCount);
      std::vector<float> out(kCount * kRanks);
      EXPECT_TRUE(succeeded(
          setoReduce(mine.data(), rank == root ? out.data() : nullptr, kCount, setoFloat32, setoSum, root, comm, nullptr)));
      if (rank == root) {
        EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + kCount), sums(0, kCount));
      }
      EXPECT_TRUE(
          succeeded(setoBroadcast(rank == root ? mine.data() : nullptr, out.data(), kCount, setoFloat32, root, comm, nullptr)));
      EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + kCount), own(root, kCount));
      EXPECT_TRUE(
          succeeded(setoGather(mine.data(), rank == root ? out.data() : nullptr, kCount, setoFloat32, root, comm, nullptr)));
      for (int from = 0; rank == root && from < kRanks; ++from)
        EXPECT_EQ(std::vector<float>(out.begin() + from * static_cast<int>(kCount),
                                     out.begin() + (from + 1) * static_cast<int>(kCount)),
                  own(from, kCount));
      std::vector<float> part(kCount);
      const std::vector<float> parts = own(root, kCount * kRanks);
      EXPECT_TRUE(
          succeeded(setoScatter(rank == root ? parts.data() : nullptr, part.data(), kCount, setoFloat32, root, comm, nullptr)));
      EXPECT_EQ(part[1], element(root, static_cast<std::size_t>(rank) * kCount + 1));
      std::vector<float> bcast = rank == root ? own(root, kCount) : std::vector<float>(kCount);
      EXPECT_TRUE(succeeded(setoBcast(bcast.data(), kCount, setoFloat32, root, comm, nullptr)));
      EXPECT_EQ(bcast, own(root, kCount));
    }
  });
}

SETO_TEST_ALONE(ApiCollectives, parts_of_all_ranks) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    const auto self = static_cast<std::size_t>(rank);
    const std::vector<float> mine = own(rank, kCount * kRanks);
    std::vector<float> all(kCount * kRanks);
    EXPECT_TRUE(succeeded(setoAllGather(mine.data(), all.data(), kCount, setoFloat32, comm, nullptr)));
    for (int from = 0; from < kRanks; ++from) EXPECT_EQ(all[static_cast<std::size_t>(from) * kCount + 5], element(from, 5));
    std::vector<float> part(kCount);
    EXPECT_TRUE(succeeded(setoReduceScatter(mine.data(), part.data(), kCount, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(part, sums(self * kCount, kCount));
    EXPECT_TRUE(succeeded(setoAlltoAll(mine.data(), all.data(), kCount, setoFloat32, comm, nullptr)));
    for (int from = 0; from < kRanks; ++from)
      EXPECT_EQ(all[static_cast<std::size_t>(from) * kCount + 5], element(from, self * kCount + 5));
    EXPECT_TRUE(succeeded(setoBarrier(comm, nullptr)));
  });
}

SETO_TEST_ALONE(ApiCollectives, uneven_parts) {
  ThreadRanks ranks(kRanks);
  const std::vector<std::size_t> counts{10, 0, 300};
  const std::vector<std::size_t> displacements{400, 390, 5};
  ranks.each([&](setoComm_t comm, int rank) {
    const auto self = static_cast<std::size_t>(rank);
    std::vector<float> mine = own(rank, 310);
    std::vector<float> all(500, -1);
    EXPECT_TRUE(succeeded(
        setoAllGatherv(mine.data(), counts[self], all.data(), counts.data(), displacements.data(), setoFloat32, comm, nullptr)));
    EXPECT_EQ(all[400], element(0, 0));
    EXPECT_EQ(all[409], element(0, 9));
    EXPECT_EQ(all[410], -1);
    EXPECT_EQ(all[4], -1);
    EXPECT_EQ(all[304], element(2, 299));
    std::vector<float> part(300, -1);
    EXPECT_TRUE(succeeded(setoReduceScatterv(mine.data(), part.data(), counts.data(), setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(part[9], counts[self] == 0 ? -1 : sum(self == 0 ? 9 : 19));
    EXPECT_TRUE(failed(setoAllGatherv(mine.data(), 7, all.data(), counts.data(), nullptr, setoFloat32, comm, nullptr),
                       setoInvalidArgument, "sendcount: 7"));
  });
}

// Parts with gaps; the input lies in a gap.
SETO_TEST_ALONE(ApiCollectives, parts_around_the_input) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int rank) {
    std::vector<int> memory(9, -1);
    const size_t counts[] = {3, 3}, places[] = {6, 0};
    std::fill_n(memory.begin() + 3, 3, rank);
    EXPECT_TRUE(succeeded(setoAllGatherv(memory.data() + 3, 3, memory.data(), counts, places, setoInt32, comm, nullptr)));
    EXPECT_EQ(memory, (std::vector<int>{1, 1, 1, rank, rank, rank, 0, 0, 0}));
    const size_t nearer[] = {5, 0};
    EXPECT_TRUE(failed(setoAllGatherv(memory.data() + 3, 3, memory.data(), counts, nearer, setoInt32, comm, nullptr),
                       setoInvalidArgument, "overlap"));
  });
}

SETO_TEST_ALONE(ApiCollectives, zero_elements_match_and_order) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    EXPECT_TRUE(succeeded(setoAllReduce(nullptr, nullptr, 0, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_TRUE(succeeded(setoAllGather(nullptr, nullptr, 0, setoInt8, comm, nullptr)));
    EXPECT_TRUE(succeeded(setoBroadcast(nullptr, nullptr, 0, setoInt8, 1, comm, nullptr)));
    const std::int64_t mine = rank;
    std::int64_t all = 0;
    EXPECT_TRUE(succeeded(setoAllReduce(&mine, &all, 1, setoInt64, setoMax, comm, nullptr)));
    EXPECT_EQ(all, kRanks - 1);
  });
}

SETO_TEST_ALONE(ApiCollectives, one_call_may_pin_its_algorithm) {
  ThreadRanks ranks(kRanks);
  int ring = 0;
  ASSERT_TRUE(succeeded(setoAlgorithmId("ring", &ring)));
  ranks.each([&](setoComm_t comm, int rank) {
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.algorithm = ring;
    config.tag = 42;
    std::vector<float> mine = own(rank, kCount);
    EXPECT_TRUE(succeeded(setoAllReduceConfig(mine.data(), mine.data(), kCount, setoFloat32, setoSum, comm, nullptr, &config)));
    EXPECT_EQ(mine, sums(0, kCount));
  });
}

}  // namespace
}  // namespace seto::testing

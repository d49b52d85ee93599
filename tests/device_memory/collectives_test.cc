// Collectives on memory of GPUs, by ranks that are threads, on the stand-in for the driver.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

// Small integers, whose sums are exact.
float element(int rank, std::size_t index) { return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 3) % 13); }

std::vector<float> own(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, first + i);
  return values;
}

std::vector<float> sums(int ranks, std::size_t count, std::size_t first = 0) {
  std::vector<float> values(count, 0);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i) values[i] += element(rank, first + i);
  return values;
}

// The inputs of all ranks, one after another.
std::vector<float> joined(int ranks, std::size_t count) {
  std::vector<float> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> part = own(rank, count);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class DeviceCollectives : public DeviceMemory {
 protected:
  void all_reduce(DeviceRank& mine, int ranks, std::size_t count) {
    SCOPED_TRACE("all_reduce of " + std::to_string(count) + ", rank " + std::to_string(mine.rank));
    float* const input = mine.upload(own(mine.rank, count));
    float* const output = mine.upload(std::vector<float>(count, -1));
    ASSERT_TRUE(succeeded(setoAllReduce(input, output, count, setoFloat32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(output, count), sums(ranks, count));
    EXPECT_EQ(mine.read(input, count), own(mine.rank, count));
    ASSERT_TRUE(succeeded(setoAllReduce(input, input, count, setoFloat32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(input, count), sums(ranks, count));
  }
};

TEST_F(DeviceCollectives, AllReduceOnGpusOfTheirOwn) {
  SETO_NEEDS_GPUS(2);
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    int device = -2;
    EXPECT_TRUE(succeeded(setoCommCuDevice(mine.comm, &device)));
    EXPECT_EQ(device, mine.rank);
    for (const std::size_t count : {1, 1000, 0, 20'000}) all_reduce(mine, 2, count);
  });
}

TEST_F(DeviceCollectives, SeveralRanksShareAGpu) {
  start_gpus(1);
  on_ranks(4, [&](DeviceRank& mine) {
    for (const std::size_t count : {3, 3000}) all_reduce(mine, 4, count);
  });
}

TEST_F(DeviceCollectives, InWeakMemory) {
  SETO_NEEDS_STAND_IN();
  start_gpus(3, {{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "7"}});
  on_ranks(3, [&](DeviceRank& mine) {
    for (const std::size_t count : {40, 900}) all_reduce(mine, 3, count);
  });
}

TEST_F(DeviceCollectives, OneRank) {
  start_gpus(1);
  on_ranks(1, [&](DeviceRank& mine) { all_reduce(mine, 1, 500); });
}

TEST_F(DeviceCollectives, AllOthers) {
  constexpr int kRanks = 3;
  constexpr std::size_t kCount = 700;
  constexpr int kRoot = 1;
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    const setoComm_t comm = mine.comm;
    const setoStream_t stream = mine.stream();
    const auto index = static_cast<std::size_t>(mine.rank);
    float* const one = mine.upload(own(mine.rank, kCount));
    float* const all = mine.upload(own(mine.rank, kRanks * kCount));
    float* const out = mine.upload(std::vector<float>(kCount, -1));
    float* const out_all = mine.upload(std::vector<float>(kRanks * kCount, -1));

    EXPECT_TRUE(succeeded(setoReduce(one, out, kCount, setoFloat32, setoSum, kRoot, comm, stream)));
    EXPECT_EQ(mine.read(out, kCount), mine.rank == kRoot ? sums(kRanks, kCount) : std::vector<float>(kCount, -1));
    EXPECT_TRUE(succeeded(setoBroadcast(one, out, kCount, setoFloat32, kRoot, comm, stream)));
    EXPECT_EQ(mine.read(out, kCount), own(kRoot, kCount));
    EXPECT_TRUE(succeeded(setoReduceScatter(all, out, kCount, setoFloat32, setoSum, comm, stream)));
    EXPECT_EQ(mine.read(out, kCount), sums(kRanks, kCount, index * kCount));
    EXPECT_TRUE(succeeded(setoAllGather(one, out_all, kCount, setoFloat32, comm, stream)));
    EXPECT_EQ(mine.read(out_all, kRanks * kCount), joined(kRanks, kCount));
    EXPECT_TRUE(succeeded(setoAlltoAll(all, out_all, kCount, setoFloat32, comm, stream)));
    std::vector<float> exchanged;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> part = own(rank, kCount, index * kCount);
      exchanged.insert(exchanged.end(), part.begin(), part.end());
    }
    EXPECT_EQ(mine.read(out_all, kRanks * kCount), exchanged);
    EXPECT_TRUE(succeeded(setoGather(one, out_all, kCount, setoFloat32, kRoot, comm, stream)));
    if (mine.rank == kRoot) {
      EXPECT_EQ(mine.read(out_all, kRanks * kCount), joined(kRanks, kCount));
    }
    EXPECT_TRUE(succeeded(setoScatter(all, out, kCount, setoFloat32, kRoot, comm, stream)));
    EXPECT_EQ(mine.read(out, kCount), own(kRoot, kCount, index * kCount));
    EXPECT_TRUE(succeeded(setoBarrier(comm, stream)));
    // In place.
    EXPECT_TRUE(succeeded(setoReduceScatter(all, all + index * kCount, kCount, setoFloat32, setoSum, comm, stream)));
    EXPECT_EQ(mine.read(all + index * kCount, kCount), sums(kRanks, kCount, index * kCount));
    mine.write(out_all + index * kCount, own(mine.rank, kCount));
    EXPECT_TRUE(succeeded(setoAllGather(out_all + index * kCount, out_all, kCount, setoFloat32, comm, stream)));
    EXPECT_EQ(mine.read(out_all, kRanks * kCount), joined(kRanks, kCount));
    EXPECT_TRUE(succeeded(setoBcast(one, kCount, setoFloat32, kRoot, comm, stream)));
    EXPECT_EQ(mine.read(one, kCount), own(kRoot, kCount));
    EXPECT_TRUE(succeeded(setoCommFinalize(comm)));
  });
}

// ---- every type and operation

struct NumberFormat {
  setoDataType_t type;
  std::size_t size;
  int mantissa_bits, bias;  // 0: of an integer
};
constexpr std::array<NumberFormat, setoNumTypes> kFormats{{{setoInt8, 1, 0, 0},
                                                           {setoUint8, 1, 0, 0},
                                                           {setoInt32, 4, 0, 0},
                                                           {setoUint32, 4, 0, 0},
                                                           {setoInt64, 8, 0, 0},
                                                           {setoUint64, 8, 0, 0},
                                                           {setoFloat16, 2, 10, 15},
                                                           {setoFloat32, 4, 23, 127},
                                                           {setoFloat64, 8, 52, 1023},
                                                           {setoBfloat16, 2, 7, 127},
                                                           {setoFloat8e4m3, 1, 3, 7},
                                                           {setoFloat8e5m2, 1, 2, 15}}};

// A number from 1 on that the format holds exactly.
std::uint64_t bits_in(const NumberFormat& format, std::uint64_t number) {
  if (format.bias == 0) return number;
  const int exponent = std::ilogb(static_cast<double>(number));
  const double mantissa = std::ldexp(static_cast<double>(number), format.mantissa_bits - exponent);
  return static_cast<std::uint64_t>(mantissa) - (std::uint64_t{1} << format.mantissa_bits) +
         (static_cast<std::uint64_t>(exponent + format.bias) << format.mantissa_bits);
}

// The numbers in turn.
std::vector<std::byte> packed(const NumberFormat& format, const std::array<unsigned, 3>& numbers, std::size_t count) {
  std::vector<std::byte> bytes(count * format.size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = bits_in(format, numbers[i % numbers.size()]);
    std::memcpy(bytes.data() + i * format.size, &bits, format.size);
  }
  return bytes;
}

// Rank 0 and rank 1 have these numbers. All results are exact even in eight bits.
constexpr std::array<std::array<unsigned, 3>, 2> kNumbers{{{2, 4, 8}, {6, 6, 12}}};
struct Reduction {
  setoRedOp_t op;
  std::array<unsigned, 3> result;
  bool of_bits = false;
};
constexpr setoRedOp_t kPremulSum = setoNumOps;  // stands for one that is made for the type, with the factor 2
constexpr std::array<Reduction, 9> kReductions{{{setoSum, {8, 10, 20}},
                                                {setoProd, {12, 24, 96}},
                                                {setoMax, {6, 6, 12}},
                                                {setoMin, {2, 4, 8}},
                                                {setoAvg, {4, 5, 10}},
                                                {kPremulSum, {16, 20, 40}},
                                                {setoBitAnd, {2, 4, 8}, true},
                                                {setoBitOr, {6, 6, 12}, true},
                                                {setoBitXor, {4, 2, 4}, true}}};

// A call whose result is read when all have been issued.
struct Pending {
  std::string name;
  const std::byte* result;
  std::vector<std::byte> expected;
};

// An all_reduce and a reduce_scatter.
void issue(DeviceRank& mine, const NumberFormat& format, const Reduction& reduction, setoRedOp_t op, const std::byte* input,
           std::byte*& output, std::vector<Pending>& pending) {
  constexpr std::size_t kEach = 3;
  const std::string name = "type " + std::to_string(format.type) + ", operation " + std::to_string(reduction.op);
  ASSERT_TRUE(succeeded(setoAllReduce(input, output, 2 * kEach, format.type, op, mine.comm, mine.stream()))) << name;
  pending.push_back({"all_reduce of " + name, output, packed(format, reduction.result, 2 * kEach)});
  output += 64;
  ASSERT_TRUE(succeeded(setoReduceScatter(input, output, kEach, format.type, op, mine.comm, mine.stream()))) << name;
  pending.push_back({"reduce_scatter of " + name, output, packed(format, reduction.result, kEach)});
  output += 64;
}

TEST_F(DeviceCollectives, AllTypesAndOperations) {
  start_gpus(1);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* output = static_cast<std::byte*>(mine.allocate(std::size_t{64} * 2 * kFormats.size() * kReductions.size()));
    std::vector<Pending> pending;
    for (const NumberFormat& format : kFormats) {
      const std::byte* const input = mine.upload(packed(format, kNumbers[static_cast<std::size_t>(mine.rank)], 6));
      std::uint64_t factor = bits_in(format, 2);
      setoRedOp_t premul_sum{};
      ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&premul_sum, &factor, format.type, setoScalarHostImmediate, mine.comm)));
      EXPECT_TRUE(succeeded(setoGroupStart()));  // few launches
      for (const Reduction& reduction : kReductions) {
        if (reduction.of_bits && format.bias != 0) continue;
        const setoRedOp_t op = reduction.op == kPremulSum ? premul_sum : reduction.op;
        issue(mine, format, reduction, op, input, output, pending);
      }
      EXPECT_TRUE(succeeded(setoGroupEnd()));
      EXPECT_TRUE(succeeded(setoRedOpDestroy(premul_sum, mine.comm)));
    }
    for (const Pending& one : pending) EXPECT_EQ(mine.read(one.result, one.expected.size()), one.expected) << one.name;
  });
}

TEST_F(DeviceProcesses, OtherCollectivesBetweenProcesses) {
  constexpr int kPair = 2;
  constexpr std::size_t kEach = 50;
  const auto between = [&](DeviceRank& mine) {
    const auto first = static_cast<std::size_t>(mine.rank) * kEach;  // of this rank's part
    float* const one = mine.upload(own(mine.rank, kEach));
    float* const all = mine.upload(own(mine.rank, kPair * kEach));
    float* const out = mine.upload(std::vector<float>(kEach, -1));
    float* const out_all = mine.upload(std::vector<float>(kPair * kEach, -1));
    EXPECT_TRUE(succeeded(setoAllGather(one, out_all, kEach, setoFloat32, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(out_all, kPair * kEach), joined(kPair, kEach));
    EXPECT_TRUE(succeeded(setoReduceScatter(all, out, kEach, setoFloat32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(out, kEach), sums(kPair, kEach, first));
    EXPECT_TRUE(succeeded(setoBroadcast(one, out, kEach, setoFloat32, 1, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(out, kEach), own(1, kEach));
    EXPECT_TRUE(succeeded(setoAlltoAll(all, out_all, kEach, setoFloat32, mine.comm, mine.stream())));
    std::vector<float> exchanged = own(0, kEach, first);
    const std::vector<float> of_rank_1 = own(1, kEach, first);
    exchanged.insert(exchanged.end(), of_rank_1.begin(), of_rank_1.end());
    EXPECT_EQ(mine.read(out_all, kPair * kEach), exchanged);
    EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
  };
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < kPair; ++rank) children.emplace_back([&, rank] { return run_rank(rank, kPair, kPair, between); });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto::testing

// Collectives on memory of GPUs, by ranks that are threads, on the stand-in for the driver.
#include <numeric>

#include "tests/device_memory/device_ranks.h"

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

}  // namespace
}  // namespace seto::testing

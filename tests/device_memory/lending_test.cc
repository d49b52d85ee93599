// Calls in which GPUs read messages in the buffers of their peers (decision 36): buffers that change at once, that lie in each
// other, that peers cannot reach, and that are freed after a failure.
#include <gmock/gmock.h>

#include "tests/device_memory/lent_calls.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DeviceLending : public DeviceMemory {
 protected:
  void SetUp() override {
    DeviceMemory::SetUp();
    setenv("SETO_LOG", "debug", 1);
    ::testing::internal::CaptureStderr();
  }
  void TearDown() override {
    unsetenv("SETO_LOG");
    if (!is_read_) (void)logged();
    DeviceMemory::TearDown();
  }
  std::string logged() {
    is_read_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

  static void fill(const DeviceRank& mine, std::int32_t* memory, unsigned value) {
    EXPECT_TRUE(ok(mine.driver.memset_d32_async(reinterpret_cast<cuda::DevicePointer>(memory), value, kLent, mine.cuda_stream)));
  }

 private:
  bool is_read_ = false;
};

// In the order of its stream, a rank writes to its input right after the call, whether its peers have ended theirs or not.
TEST_F(DeviceLending, BuffersChangeRightAfterTheCall) {
  start_gpus(kRanks);
  for (const char* const algorithm : {"two_shot", "ring", "one_shot"}) {
    SCOPED_TRACE(algorithm);
    on_ranks(kRanks, [&](DeviceRank& mine) {
      constexpr int kRounds = 4;
      auto* const input = mine.upload(all_of(0));
      std::int32_t* outputs[kRounds];
      for (std::int32_t*& output : outputs) output = mine.upload(all_of(-1));
      for (int round = 0; round < kRounds; ++round) {
        fill(mine, input, static_cast<unsigned>(10 * round + mine.rank));
        ASSERT_TRUE(succeeded(lent_sum(mine, input, outputs[round], algorithm)));
      }
      fill(mine, input, 77);
      for (int round = 0; round < kRounds; ++round) EXPECT_EQ(mine.read(outputs[round], kLent), all_of(30 * round + 3));
    });
  }
  EXPECT_THAT(logged(), HasSubstr(kLends));
}

// Each call reads what the one before wrote, and writes over what the one before read.
TEST_F(DeviceLending, BuffersTakeTurnsAsInputAndOutput) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const one = mine.upload(all_of(mine.rank + 1));
    auto* const other = mine.upload(all_of(-1));
    ASSERT_TRUE(succeeded(lent_sum(mine, one, other)));    // 6
    ASSERT_TRUE(succeeded(lent_sum(mine, other, one)));    // 18
    ASSERT_TRUE(succeeded(lent_sum(mine, one, one)));      // 54
    ASSERT_TRUE(succeeded(lent_sum(mine, one, other)));    // 162
    ASSERT_TRUE(succeeded(lent_sum(mine, other, other)));  // 486
    EXPECT_EQ(mine.read(other, kLent), all_of(486));
    EXPECT_EQ(mine.read(one, kLent), all_of(54));
  });
  EXPECT_THAT(logged(), HasSubstr(", read in the buffers of the peers"));  // all messages
}

TEST_F(DeviceLending, ARankInPlaceAndOthersThatAreNot) {
  start_gpus(2);  // two ranks share one
  on_ranks(kRanks, [&](DeviceRank& mine) {
    for (const char* const algorithm : {"two_shot", "ring", "one_shot"}) {
      auto* const input = mine.upload(all_of(mine.rank + 1));
      auto* const output = mine.rank == 1 ? input : mine.upload(all_of(-1));
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output, algorithm)));
      EXPECT_EQ(mine.read(output, kLent), all_of(6)) << algorithm;
    }
  });
}

TEST_F(DeviceLending, PartsInPlace) {
  constexpr std::size_t kPart = 5'000;
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const all = mine.upload(all_of(mine.rank + 1, kRanks * kPart));
    auto* const own = all + static_cast<std::size_t>(mine.rank) * kPart;
    ASSERT_TRUE(succeeded(setoAllGather(own, all, kPart, setoInt32, mine.comm, mine.stream())));
    std::vector<std::int32_t> gathered;
    for (int rank = 0; rank < kRanks; ++rank) gathered.insert(gathered.end(), kPart, rank + 1);
    EXPECT_EQ(mine.read(all, kRanks * kPart), gathered);
    ASSERT_TRUE(succeeded(setoReduceScatter(all, own, kPart, setoInt32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(own, kPart), all_of(kRanks * (mine.rank + 1), kPart));
    ASSERT_TRUE(succeeded(setoBcast(all, kPart, setoInt32, 2, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(all, kPart), all_of(1, kPart));
  });
  EXPECT_THAT(logged(), HasSubstr(kLends));
}

TEST_F(DeviceLending, AReplayedGraphLends) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    auto* const input = mine.upload(all_of(mine.rank));
    auto* const output = mine.upload(all_of(-1));
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
    EXPECT_TRUE(succeeded(lent_sum(mine, output, input)));
    cuda::Graph graph = nullptr;
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 2; ++round) ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    EXPECT_EQ(mine.read(input, kLent), all_of(81));  // 3, 9, 27, 81
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

// The stand-in reports an access of memory that its owner has not opened to the GPU. Rank 1 has such memory; the others do not
// know it.
TEST_F(DeviceLending, MemoryThatPeersCannotReadIsCopied) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    cuda::DevicePointer mapped = 0;
    cuda::MemoryHandle handle = 0;
    std::size_t piece = 0;
    const cuda::AllocationProperties properties{.location = {.id = mine.gpu}};
    const cuda::MemoryAccess access{.location = {.id = mine.gpu}};
    ASSERT_TRUE(ok(mine.driver.mem_get_granularity(&piece, &properties, cuda::Granularity::minimum)));
    ASSERT_GE(piece, kLent * sizeof(std::int32_t));
    ASSERT_TRUE(ok(mine.driver.mem_create(&handle, piece, &properties, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_address_reserve(&mapped, piece, 0, 0, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_map(mapped, piece, 0, handle, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_set_access(mapped, piece, &access, 1)));
    auto* const plain = mine.upload(all_of(mine.rank + 1));
    auto* const output = mine.upload(all_of(-1));
    auto* const input = mine.rank == 1 ? reinterpret_cast<std::int32_t*>(mapped) : plain;
    fill(mine, input, static_cast<unsigned>(mine.rank + 1));
    ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
    EXPECT_EQ(mine.read(output, kLent), all_of(6));
    EXPECT_EQ(mine.read(input, kLent), all_of(mine.rank + 1));
    ASSERT_TRUE(succeeded(lent_sum(mine, input, input)));
    ASSERT_TRUE(succeeded(lent_sum(mine, output, input)));
    EXPECT_EQ(mine.read(input, kLent), all_of(18));
    EXPECT_TRUE(ok(mine.driver.mem_unmap(mapped, piece)));
    EXPECT_TRUE(ok(mine.driver.mem_release(handle)));
    EXPECT_TRUE(ok(mine.driver.mem_address_free(mapped, piece)));
  });
  EXPECT_THAT(logged(), HasSubstr("because it is memory at virtual addresses"));
}

// Ranks 0 and 1 lend, and rank 2 never comes. When the kernel of rank 0 has ended, it frees what it lent; rank 1, which may learn
// of the failure later, must not read it any more.
TEST_F(DeviceLending, LentBuffersMayBeFreedAfterAnAbort) {
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    cuda::DevicePointer lent = 0;
    ASSERT_TRUE(ok(mine.driver.mem_alloc(&lent, kLent * sizeof(std::int32_t))));
    auto* const input = reinterpret_cast<std::int32_t*>(lent);
    fill(mine, input, 1);
    auto* const output = mine.upload(all_of(-1));
    if (mine.rank < 2) {
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
    }
    if (mine.rank == 0) {
      EXPECT_TRUE(succeeded(setoCommAbort(mine.comm)));
    } else {
      const Deadline until = Deadline::after_ms(kPatienceMs);
      setoResult_t state = setoSuccess;
      while (state == setoSuccess && !until.passed()) EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
      EXPECT_THAT(std::string(setoGetLastError(mine.comm)), HasSubstr("setoCommAbort was called on rank 0"));
    }
    mine.synchronize();
    EXPECT_TRUE(ok(mine.driver.mem_free(lent)));
    mine.write(output, all_of(7));  // the context is not lost
    EXPECT_EQ(mine.read(output, kLent), all_of(7));
    if (mine.rank != 0) (void)setoCommDestroy(mine.comm);
    mine.comm = nullptr;
  });
}

// Messages below the size from which they are lent go through slots.
TEST_F(DeviceLending, ShortMessagesAreNotLent) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(all_of(1, 100));
    ASSERT_TRUE(succeeded(setoAllReduce(memory, memory, 100, setoInt32, setoSum, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(memory, 100), all_of(2, 100));
  });
  EXPECT_THAT(logged(), Not(HasSubstr(kLends)));
}

}  // namespace
}  // namespace seto::testing

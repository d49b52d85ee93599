// Calls in which GPUs read messages in the buffers of ranks of other processes (decision 42).
#include <gmock/gmock.h>

#include <set>

#include "src/core/device_memory/lending/lent_windows.h"
#include "tests/device_memory/device_faults.h"
#include "tests/device_memory/lent_calls.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kSize = kLent * sizeof(std::int32_t);

// Empty: all are `value`. Else the first one that is not.
std::string difference(const std::vector<std::int32_t>& found, std::int32_t value) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != value)
      return "element " + std::to_string(i) + " is " + std::to_string(found[i]) + " instead of " + std::to_string(value);
  return {};
}

class DeviceProcessLending : public DeviceProcesses {
 protected:
  void SetUp() override {
    setenv("SETO_MEMORY", "device", 1);  // for setoMemAlloc
    DeviceProcesses::SetUp();
  }
  void TearDown() override {
    DeviceProcesses::TearDown();
    unsetenv("SETO_MEMORY");
  }

  // The ranks run as processes. `logs`: a text that the log of each rank has; "!" before it: that none has.
  void on_processes(int ranks, const Body& body, const std::string& logs = kLends, const Variables& variables = {}) {
    std::vector<ChildProcess> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.emplace_back([&, rank] {
        setenv("SETO_LOG", "debug", 1);
        ::testing::internal::CaptureStderr();
        const bool passed = run_rank(
            rank, ranks, 2,
            [&](DeviceRank& mine) {
              body(mine);
              expect_end(mine);
            },
            device_config(), variables);
        const std::string logged = ::testing::internal::GetCapturedStderr();
        if (logs[0] == '!')
          EXPECT_THAT(logged, Not(HasSubstr(logs.substr(1))));
        else
          EXPECT_THAT(logged, HasSubstr(logs));
        return passed;
      });
    for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
  }

  // Destroys the communicator. What this process has mapped of the others goes then.
  static void expect_end(DeviceRank& mine) {
    if (mine.comm != nullptr) {
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    }
    mine.comm = nullptr;
    const Deadline until = Deadline::after_ms(40'000);
    while (MemoryImporter::of_process().mapped() > 0 && !until.passed()) std::this_thread::yield();
    EXPECT_EQ(MemoryImporter::of_process().mapped(), 0U);
  }

  // Bytes of global memory that kernels of this process have written, without flags.
  static std::uint64_t written() { return software_gpu::driver::control<std::uint64_t()>("softwareGpuWritten")(); }

  static std::int32_t* allocated() {
    void* memory = nullptr;
    EXPECT_TRUE(succeeded(setoMemAlloc(&memory, kSize)));
    return static_cast<std::int32_t*>(memory);
  }
};

// Ranks 0 and 1 have memory of setoMemAlloc and of cuMemAlloc, at some offset, and rank 2 both.
TEST_F(DeviceProcessLending, SumsOfMemoryOfBothKinds) {
  on_processes(kRanks, [&](DeviceRank& mine) {
    auto* const shared = allocated();
    auto* const plain = static_cast<std::int32_t*>(mine.allocate(kSize + 1024)) + 256;
    auto* const input = mine.rank == 1 ? plain : shared;
    auto* const output = mine.rank == 0 ? static_cast<std::int32_t*>(mine.allocate(kSize)) : mine.rank == 1 ? shared : plain;
    for (const char* const algorithm : {"two_shot", "ring", "one_shot"}) {
      mine.write(input, all_of(mine.rank + 1));
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output, algorithm)));
      EXPECT_EQ(difference(mine.read(output, kLent), 6), "") << algorithm;
      ASSERT_TRUE(succeeded(lent_sum(mine, output, output, algorithm)));
      EXPECT_EQ(difference(mine.read(output, kLent), 18), "") << algorithm;
    }
    expect_end(mine);
    EXPECT_TRUE(succeeded(setoMemFree(shared)));
  });
}

// In the order of its stream, a rank writes to its input right after the call, whether its peers have ended theirs or not.
TEST_F(DeviceProcessLending, BuffersChangeRightAfterTheCall) {
  on_processes(2, [&](DeviceRank& mine) {
    constexpr int kRounds = 4;
    auto* const input = allocated();
    std::int32_t* outputs[kRounds];
    for (std::int32_t*& output : outputs) output = mine.upload(all_of(-1));
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_TRUE(ok(mine.driver.memset_d32_async(reinterpret_cast<cuda::DevicePointer>(input),
                                                  static_cast<unsigned>(10 * round + mine.rank), kLent, mine.cuda_stream)));
      ASSERT_TRUE(succeeded(lent_sum(mine, input, outputs[round])));
    }
    EXPECT_TRUE(ok(mine.driver.memset_d32_async(reinterpret_cast<cuda::DevicePointer>(input), 77, kLent, mine.cuda_stream)));
    for (int round = 0; round < kRounds; ++round) EXPECT_EQ(difference(mine.read(outputs[round], kLent), 20 * round + 1), "");
    EXPECT_TRUE(succeeded(setoMemFree(input)));
  });
}

// Memory is freed right after the call has ended here, and what is allocated next has its address, but is other memory.
TEST_F(DeviceProcessLending, MemoryIsFreedAndAllocatedAgainAtItsAddress) {
  on_processes(2, [&](DeviceRank& mine) {
    constexpr int kRounds = 5;
    auto* const output = mine.upload(all_of(-1));
    std::set<const void*> shared_places, plain_places;
    for (int round = 0; round < kRounds; ++round) {
      auto* const shared = allocated();
      shared_places.insert(shared);
      mine.write(shared, all_of(10 * round + mine.rank));
      ASSERT_TRUE(succeeded(lent_sum(mine, shared, output)));
      mine.synchronize();
      EXPECT_TRUE(succeeded(setoMemFree(shared)));
      EXPECT_EQ(difference(mine.read(output, kLent), 20 * round + 1), "") << "round " << round;

      cuda::DevicePointer plain = 0;
      ASSERT_TRUE(ok(mine.driver.mem_alloc(&plain, kSize)));
      plain_places.insert(reinterpret_cast<void*>(plain));
      mine.write(reinterpret_cast<std::int32_t*>(plain), all_of(10 * round + 5 * mine.rank));
      ASSERT_TRUE(succeeded(lent_sum(mine, reinterpret_cast<std::int32_t*>(plain), output)));
      mine.synchronize();
      EXPECT_TRUE(ok(mine.driver.mem_free(plain)));
      EXPECT_EQ(difference(mine.read(output, kLent), 20 * round + 5), "") << "round " << round;
    }
    EXPECT_LT(shared_places.size(), std::size_t{kRounds}) << "no address came again";
    EXPECT_LT(plain_places.size(), std::size_t{kRounds}) << "no address came again";
  });
}

// Rank 1 has memory that no other process can map. It works on a copy, and the others do not know it.
TEST_F(DeviceProcessLending, MemoryThatCannotBeMappedIsCopied) {
  on_processes(2, [&](DeviceRank& mine) {
    cuda::DevicePointer mapped = 0;
    cuda::MemoryHandle handle = 0;
    std::size_t piece = 0;
    const cuda::AllocationProperties properties{.location = {.id = mine.gpu}};
    const cuda::MemoryAccess access{.location = {.id = mine.gpu}};
    ASSERT_TRUE(ok(mine.driver.mem_get_granularity(&piece, &properties, cuda::Granularity::minimum)));
    ASSERT_TRUE(ok(mine.driver.mem_create(&handle, piece, &properties, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_address_reserve(&mapped, piece, 0, 0, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_map(mapped, piece, 0, handle, 0)));
    ASSERT_TRUE(ok(mine.driver.mem_set_access(mapped, piece, &access, 1)));
    auto* const shared = allocated();
    auto* const input = mine.rank == 1 ? reinterpret_cast<std::int32_t*>(mapped) : shared;
    mine.write(input, all_of(mine.rank + 1));
    ASSERT_TRUE(succeeded(lent_sum(mine, input, input)));
    ASSERT_TRUE(succeeded(lent_sum(mine, input, input)));
    EXPECT_EQ(difference(mine.read(input, kLent), 6), "");
    EXPECT_TRUE(ok(mine.driver.mem_unmap(mapped, piece)));
    EXPECT_TRUE(ok(mine.driver.mem_release(handle)));
    EXPECT_TRUE(ok(mine.driver.mem_address_free(mapped, piece)));
    EXPECT_TRUE(succeeded(setoMemFree(shared)));
  });
}

TEST_F(DeviceProcessLending, AReplayedGraphLends) {
  on_processes(2, [&](DeviceRank& mine) {
    auto* const input = allocated();
    auto* const output = allocated();
    mine.write(input, all_of(mine.rank + 1));
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::global)));
    EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
    EXPECT_TRUE(succeeded(lent_sum(mine, output, input)));
    cuda::Graph graph = nullptr;
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 2; ++round) ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    EXPECT_EQ(difference(mine.read(input, kLent), 24), "");  // 3, 6, 12, 24
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
    expect_end(mine);
    EXPECT_TRUE(succeeded(setoMemFree(input)));
    EXPECT_TRUE(succeeded(setoMemFree(output)));
  });
}

// A driver that gives no descriptors to one rank: all stage.
TEST_F(DeviceProcessLending, WhereADriverRefusesAllMessagesAreStaged) {
  SETO_NEEDS_STAND_IN();
  const auto work = [&](DeviceRank& mine) {
    auto* const memory = mine.upload(all_of(mine.rank + 1));
    ASSERT_TRUE(succeeded(lent_sum(mine, memory, memory)));
    EXPECT_EQ(difference(mine.read(memory, kLent), 3), "");
  };
  on_processes(2, work, "so all messages are staged", {{"SOFTWARE_GPU_ERRORS", "cuMemImportFromShareableHandle:801:1-"}});
  shared_->has_id.store(0);
  on_processes(2, work, std::string("!") + kLends, {{"SOFTWARE_GPU_ERRORS", "cuMemExportToShareableHandle:801:1-"}});
}

// A driver that maps memory only when nothing runs on its GPU would wait for kernels that wait for the rank whose memory it maps.
TEST_F(DeviceProcessLending, WhereMappingWaitsForKernelsAllMessagesAreStaged) {
  SETO_NEEDS_STAND_IN();
  on_processes(2,
               [&](DeviceRank& mine) {
                 for (int call = 0; call < 3; ++call) {
                   auto* const memory = mine.upload(all_of(mine.rank + 1));
                   ASSERT_TRUE(succeeded(lent_sum(mine, memory, memory)));
                   EXPECT_EQ(difference(mine.read(memory, kLent), 3), "");
                 }
               },
               "its driver seems to map memory only when nothing runs on its GPU", {{"SOFTWARE_GPU_MAPPING_WAITS", "1"}});
}

// In the process of rank 0, unmapping is so slow that a kernel begins meanwhile. Unmapping waits for it, and it waits for rank 1,
// whose call comes later and waits until that process has mapped its memory.
TEST_F(DeviceProcessLending, SlowUnmappingKeepsNoRankFromCalls) {
  SETO_NEEDS_STAND_IN();
  constexpr unsigned kLateMs = 1'500;
  static_assert(kLateMs > LaunchGate::kLongestMs);
  const auto work = [&](DeviceRank& mine) {
    auto* const output = mine.upload(all_of(-1));
    for (int round = 0; round < 3; ++round) {
      auto* const input = mine.upload(all_of(round + mine.rank));
      const Deadline until = Deadline::after_ms(kPatienceMs);
      while (mine.rank == 1 && shared_->waiting.load() <= round && !until.passed()) std::this_thread::yield();
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output))) << setoGetLastError(mine.comm);
      if (mine.rank == 0) shared_->waiting.fetch_add(1);
      EXPECT_EQ(difference(mine.read(output, kLent), 2 * round + 1), "");
    }
  };
  ChildProcess slow([&] {
    return run_rank(0, 2, 2, work, device_config(), {{"SOFTWARE_GPU_DELAYS", "cuMemUnmap:" + std::to_string(kLateMs)}});
  });
  ChildProcess other([&] { return run_rank(1, 2, 2, work); });
  EXPECT_TRUE(slow.wait());
  EXPECT_TRUE(other.wait());
}

// Each byte that goes through a slot is written there and read again. Only the bytes that kernels write are compared: they read
// their program too, each thread for itself. A rank must write its output: one byte for each byte of it.
TEST_F(DeviceProcessLending, FewerBytesMoveThanThroughSlots) {
  SETO_NEEDS_STAND_IN();
  constexpr int kPair = 2;
  const auto count_into = [&](std::atomic<std::uint64_t>& bytes) {
    return [&](DeviceRank& mine) {
      auto* const input = mine.upload(all_of(mine.rank + 1));
      auto* const output = mine.upload(all_of(-1));
      const std::uint64_t before = written();
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
      mine.synchronize();
      bytes.fetch_add(written() - before);
      EXPECT_EQ(difference(mine.read(output, kLent), 3), "");
    };
  };
  on_processes(kPair, count_into(shared_->written_lent));
  shared_->has_id.store(0);
  on_processes(kPair, count_into(shared_->written_staged), "so all messages are staged",
               {{"SOFTWARE_GPU_ERRORS", "cuMemImportFromShareableHandle:801:1-"}});
  const double outputs = kPair * kSize;
  const double lent = static_cast<double>(shared_->written_lent.load()) / outputs;
  const double staged = static_cast<double>(shared_->written_staged.load()) / outputs;
  std::printf("bytes written for each byte of the result: %.2f lent, %.2f through slots\n", lent, staged);
  EXPECT_GE(lent, 1);
  EXPECT_LT(lent, 0.75 * staged);
}

// More allocations than stay mapped: the oldest are closed.
TEST_F(DeviceProcessLending, MappingsAreBounded) {
  constexpr std::size_t kAllocations = LentWindows::kMostWindows + 8;
  on_processes(2, [&](DeviceRank& mine) {
    auto* const output = mine.upload(all_of(-1));
    for (std::size_t i = 0; i < kAllocations; ++i) {
      auto* const input = mine.upload(all_of(static_cast<std::int32_t>(i)));
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
      mine.synchronize();
    }
    EXPECT_EQ(difference(mine.read(output, kLent), static_cast<std::int32_t>(2 * (kAllocations - 1))), "");
    const Deadline until = Deadline::after_ms(20'000);
    while (MemoryImporter::of_process().mapped() > LentWindows::kMostWindows + 1 && !until.passed()) std::this_thread::yield();
    EXPECT_LE(MemoryImporter::of_process().mapped(), LentWindows::kMostWindows + 1);
    EXPECT_GT(MemoryImporter::of_process().mapped(), LentWindows::kMostWindows / 2);
    // A rank that leaves closes what the other one has mapped: none leaves before both have looked.
    auto* const last = mine.upload(all_of(1));
    ASSERT_TRUE(succeeded(lent_sum(mine, last, output)));
    mine.synchronize();
  });
}

// Ranks 0 and 1 lend, and rank 2 never comes. When the kernel of rank 0 has ended, it frees what it lent.
TEST_F(DeviceProcessLending, LentMemoryMayBeFreedAfterAnAbort) {
  on_processes(kRanks, [&](DeviceRank& mine) {
    auto* const input = allocated();
    auto* const output = mine.upload(all_of(-1));
    mine.write(input, all_of(1));
    ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
    mine.synchronize();
    if (mine.rank < 2) {
      ASSERT_TRUE(succeeded(lent_sum(mine, input, output)));
      shared_->waiting.fetch_add(1);
    }
    if (mine.rank == 0) {
      const Deadline until = Deadline::after_ms(kPatienceMs);
      while (shared_->waiting.load() < 2 && !until.passed()) std::this_thread::yield();
      EXPECT_TRUE(succeeded(setoCommAbort(mine.comm)));
      mine.comm = nullptr;
    } else {
      expect_failed(mine, "setoCommAbort was called on rank 0");
    }
    mine.synchronize();
    EXPECT_TRUE(succeeded(setoMemFree(input)));
    mine.write(output, all_of(7));  // the context is not lost
    EXPECT_EQ(difference(mine.read(output, kLent), 7), "");
    if (mine.comm != nullptr) (void)setoCommDestroy(mine.comm);
    mine.comm = nullptr;
  });
}

// A rank is killed while it reads, and is read: both make calls all the time.
TEST_F(DeviceProcessLending, AProcessThatIsKilledWhileItReadsIsNamed) {
  const auto call_for_ever = [&](DeviceRank& mine, std::int32_t* memory) {
    setoResult_t state = setoSuccess;
    for (int call = 0; state == setoSuccess; ++call) {
      if (lent_sum(mine, memory, memory) != setoSuccess) {
        EXPECT_GT(call, 3) << setoGetLastError(mine.comm);
        break;
      }
      mine.synchronize();
      if (call == 3) shared_->waiting.fetch_add(1);
      EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
    }
  };
  ChildProcess victim([&] { return run_rank(1, 2, 2, [&](DeviceRank& mine) { call_for_ever(mine, allocated()); }); });
  ChildProcess survivor([&] {
    return run_rank(0, 2, 2, [&](DeviceRank& mine) {
      auto* const memory = allocated();
      call_for_ever(mine, memory);
      expect_failed(mine, "rank 1");
      (void)setoCommAbort(mine.comm);
      mine.comm = nullptr;
      expect_end(mine);
      EXPECT_TRUE(succeeded(setoMemFree(memory)));
      auto* const other = mine.upload(all_of(7));
      EXPECT_EQ(difference(mine.read(other, kLent), 7), "");
    });
  });
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing

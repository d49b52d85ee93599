// Groups for whose launch the process has no memory, or the GPU.
#include <barrier>
#include <cstdlib>
#include <new>

#include "tests/device_memory/device_faults.h"
#include "tests/unit/core/scripted_ranks.h"

namespace {

// The number of allocations of this thread until the first one that fails, and how many fail then; 0: none.
thread_local int until_failure = 0;
thread_local int failures = 0;

bool fails() {
  if (until_failure > 1) return --until_failure, false;
  return until_failure == 1 && failures > 0 && failures-- > 0;
}

}  // namespace

// All forms that a plain delete may end are replaced together: AddressSanitizer reports memory of its own operator new that
// another operator delete frees. They are not inlined, because GCC would take the pair of operator new and free() for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return fails() ? nullptr : std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }

namespace seto::testing {
namespace {

constexpr int kPair = 2;
constexpr int kForEver = 1'000'000;
constexpr int kMostAllocations = 3'000;
constexpr std::size_t kCalls = 3;

class DeviceMissingMemory : public DeviceFaults {
 protected:
  struct Group {
    float* summed = nullptr;
    float* sent = nullptr;
    float* received = nullptr;
  };
  static Group group_of(DeviceRank& mine) {
    return {mine.upload(std::vector<float>(kCount, 1)), mine.upload(std::vector<float>(kCount, 5)),
            mine.upload(std::vector<float>(kCount, 0))};
  }
  // Sends, receives and sums. The calls of a group are collected, and setoGroupEnd launches them.
  static void collect(DeviceRank& mine, const Group& group) {
    EXPECT_TRUE(succeeded(setoGroupStart()));
    EXPECT_TRUE(succeeded(send(mine, group.sent, kCount, 1 - mine.rank)));
    EXPECT_TRUE(succeeded(receive(mine, group.received, kCount, 1 - mine.rank)));
    for (std::size_t call = 0; call < kCalls; ++call) EXPECT_TRUE(succeeded(sum(mine, group.summed, kCount - call)));
  }
  static void expect_results(DeviceRank& mine, const Group& group) {
    EXPECT_EQ(mine.read(group.received, kCount), std::vector<float>(kCount, 5));
    EXPECT_EQ(mine.read(group.summed, 1), std::vector<float>(1, 8));
  }
  static bool has_failed(DeviceRank& mine) {
    setoResult_t state = setoSuccess;
    EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
    return state != setoSuccess;
  }

  // Makes one communicator for each allocation of the last call of a group, which fails on rank 0. `is_warm`: the programs of the
  // group are bound before. `step`: only each so many-th one fails.
  void fail_each_allocation(bool is_warm, int count, int step) {
    setoUniqueId id;
    std::barrier meeting(kPair);
    bool has_ended = false, goes_on = true;
    int attempts = 0, usable = 0;
    on_threads(kPair, [&](DeviceRank& mine) {
      setoComm_t keeper = nullptr;  // so that the kernels stay loaded
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&keeper, 1, {}, 0, &config_)));
      const Group group = group_of(mine);
      for (int allocation = 1; goes_on && allocation < kMostAllocations; allocation += step) {
        SCOPED_TRACE("allocation " + std::to_string(allocation));
        if (mine.rank == 0) {
          EXPECT_TRUE(succeeded(setoGetUniqueId(&id)));
        }
        meeting.arrive_and_wait();
        ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, kPair, id, mine.rank, &config_)));
        const auto issue = [&](int number) {
          collect(mine, group);
          until_failure = number;
          failures = number > 0 ? count : 0;
          const setoResult_t result = setoGroupEnd();
          until_failure = failures = 0;
          return result;
        };
        if (is_warm) {
          EXPECT_TRUE(succeeded(issue(0)));
        }
        mine.write(group.summed, std::vector<float>(kCount, 1));
        meeting.arrive_and_wait();
        if (mine.rank == 1) {
          (void)issue(0);  // it may hear of the failure before
        } else {
          const setoResult_t result = issue(allocation);
          const bool failed = result != setoSuccess && has_failed_soon(mine, count);
          if (result != setoSuccess && !failed) {
            ++usable;
            EXPECT_TRUE(succeeded(issue(0)));
          }
          ++attempts;
          has_ended = !failed;
          goes_on = result != setoSuccess;
        }
        meeting.arrive_and_wait();
        if (has_ended) {
          expect_results(mine, group);
          EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
          mine.comm = nullptr;
        } else {
          expect_failed(mine, "rank 0 could not launch ");
          mine.synchronize();
          abort(mine);
        }
        meeting.arrive_and_wait();
      }
      EXPECT_TRUE(succeeded(setoCommDestroy(keeper)));
    });
    EXPECT_FALSE(goes_on) << "each attempt has failed";
    RecordProperty("attempts", attempts);
    RecordProperty("usable", usable);
  }

 private:
  // Without any memory the thread that watches says it.
  static bool has_failed_soon(DeviceRank& mine, int count) {
    const Deadline until = Deadline::after_ms(count > 1 ? 200 : 0);
    while (!has_failed(mine) && !until.passed()) std::this_thread::yield();
    return has_failed(mine);
  }

  setoConfig_t config_ = device_config();
};

// The group fails as a whole, and may be repeated; or its communicator fails on all ranks.
TEST_F(DeviceMissingMemory, EachAllocationOfAGroupFailsOnce) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kPair);
  fail_each_allocation(true, 1, 1);
}

TEST_F(DeviceMissingMemory, AllAllocationsOfAGroupFailFromOneOn) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kPair);
  fail_each_allocation(true, kForEver, 7);
}

TEST_F(DeviceMissingMemory, AllocationsOfAGroupFailWhoseProgramsAreNotBound) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kPair);
  fail_each_allocation(false, 1, 127);
}

// A group that lacks memory half-way has added calls that no launch may execute later.
TEST_F(DeviceMissingMemory, CallsThatWereDroppedAreNotLaunched) {
  start_gpus(1);
  const Result<std::shared_ptr<GpuContext>> gpu = GpuContext::of_device(0);
  ASSERT_TRUE(ok(gpu.status()));
  const ContextScope scope(*gpu.value());
  const ScriptedRanks ranks(1);
  const Members members(ranks.connected());
  OperationOrder order(members);
  Result<std::unique_ptr<Launches>> made = Launches::create(*gpu.value(), order, 1, nullptr, nullptr);
  ASSERT_TRUE(ok(made.status()));
  Launches& launches = *made.value();
  Launches::Request request;
  request.shape = std::make_shared<DeviceShape>();
  ASSERT_TRUE(ok(launches.add(std::move(request), 0)));
  launches.drop({});
  EXPECT_TRUE(ok(launches.flush())) << "a launch without a kernel would fail";
  EXPECT_EQ(launches.issued(), 0U);
}

// Programs in device memory, and memory for what their steps keep, come with the first call.
TEST_F(DeviceMissingMemory, AGpuWithoutMemoryEndsAGroupOnAllRanks) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kPair);
  for (const char* const call : {"cuMemAlloc:2:1-", "cuMemHostAlloc:2:1-", "cuEventCreate:2:1-"}) {
    SCOPED_TRACE(call);
    std::barrier meeting(kPair);
    on_ranks(kPair, [&](DeviceRank& mine) {
      constexpr std::size_t kMany = 2'000;  // programs fill what was allocated before
      const Group group = group_of(mine);
      meeting.arrive_and_wait();
      if (mine.rank == 0) inject(call);
      meeting.arrive_and_wait();
      bool failed = false;
      for (std::size_t round = 1; round < kMany && !failed; ++round) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        for (std::size_t i = 0; i < kCalls; ++i) (void)sum(mine, group.summed, 1 + round % kCount);
        failed = setoGroupEnd() != setoSuccess;
      }
      EXPECT_TRUE(failed);
      expect_failed(mine, "could not launch its call of all_reduce");
      mine.synchronize();
      inject("");
      abort(mine);
    });
  }
}

}  // namespace
}  // namespace seto::testing

// A call that cannot be issued because memory is missing has no operation number, so it delays no later call.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "tests/support/api_ranks.h"

namespace {

// Number of allocations of this thread until one fails; 0: none fails.
thread_local int until_failure = 0;

}  // namespace

// All forms that a plain delete may end are replaced together: AddressSanitizer reports memory of its own operator new that
// another operator delete frees. They are not inlined, because GCC would take the pair of operator new and free() for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  const bool fails = until_failure > 0 && --until_failure == 0;
  return fails ? nullptr : std::malloc(size > 0 ? size : 1);
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

constexpr const char* kGood = "setoSuccess";
constexpr int kMostAllocations = 1'000;

// Every allocation of the call fails once, on rank 0. Then the call is repeated, and matches the one call of rank 1.
TEST(IssueWithoutMemory, DelaysNoLaterOperation) {
  EXPECT_TRUE(run_ranks(Ranks::as_threads, 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    ASSERT_EQ(outcome(setoStreamCreate(&stream)), kGood);
    std::vector<int> data(16, 1);
    const auto issue = [&] { return setoAllReduce(data.data(), data.data(), data.size(), setoInt32, setoSum, own.comm, stream); };
    ASSERT_EQ(outcome(issue()), kGood);  // starts the background thread and makes what is made once
    std::uint64_t position = 0;
    ASSERT_EQ(setoStreamPosition(stream, &position), setoSuccess);
    ASSERT_EQ(outcome(setoStreamWait(stream, position, 20'000)), kGood);

    int failures = 0;
    setoResult_t result = setoInternalError;
    for (int allocation = 1; result != setoSuccess && allocation < kMostAllocations; ++allocation) {
      until_failure = own.rank == 0 ? allocation : 0;
      result = issue();
      until_failure = 0;
      if (result != setoSuccess) ++failures;
    }
    EXPECT_EQ(result, setoSuccess);
    EXPECT_EQ(failures > 0, own.rank == 0);
    ASSERT_EQ(setoStreamPosition(stream, &position), setoSuccess);
    EXPECT_EQ(outcome(setoStreamWait(stream, position, 20'000)), kGood);
    EXPECT_EQ(data, std::vector<int>(16, 4));
    if (::testing::Test::HasFailure()) (void)setoCommAbort(own.comm);
    EXPECT_EQ(outcome(setoStreamDestroy(stream)), kGood);
  }));
}

}  // namespace
}  // namespace seto::testing

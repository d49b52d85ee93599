// The order of work in and between streams, and what waits for a kernel that runs.
#include <gmock/gmock.h>

#include <chrono>
#include <future>

#include "src/base/clock.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/software_gpu/driver/process_channel.h"
#include "tests/support/child_process.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DriverCode;
using ::testing::Each;
using ::testing::ElementsAre;

class Streams : public StandInTest {
 protected:
  // Whether the call waits for the kernel: it does not return within a time that it would need without, and returns afterwards.
  template <class Call>
  void expect_waits_for_kernel(const char* what, const Call& call) {
    SCOPED_TRACE(what);
    const cuda::Stream stream = make_stream();
    const WaitingKernel waiting = launch_waiting_kernel(stream);
    std::future<void> returned = std::async(std::launch::async, [&] {
      EXPECT_TRUE(ok(driver().ctx_set_current(context())));
      EXPECT_TRUE(ok(call()));
      EXPECT_EQ(waiting.has_ended(), 1U);
    });
    EXPECT_EQ(returned.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    EXPECT_EQ(driver().stream_query.code(stream), DriverCode::not_ready);
    waiting.let_end();
    returned.get();
    EXPECT_TRUE(ok(driver().stream_destroy(stream)));
  }
};

TEST_F(Streams, MappingWaitsForKernelsIfASettingAsksForIt) {
  SETO_NEEDS_STAND_IN();
  constexpr std::size_t kPiece = 2 << 20;
  start({{"SOFTWARE_GPU_MAPPING_WAITS", "1"}});
  const cuda::AllocationProperties properties;
  const cuda::MemoryAccess access;
  cuda::MemoryHandle handle = 0;
  cuda::DevicePointer pointer = 0;
  ASSERT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
  ASSERT_TRUE(ok(driver().mem_address_reserve(&pointer, kPiece, 0, 0, 0)));
  expect_waits_for_kernel("cuMemMap", [&] { return driver().mem_map(pointer, kPiece, 0, handle, 0); });
  expect_waits_for_kernel("cuMemSetAccess", [&] { return driver().mem_set_access(pointer, kPiece, &access, 1); });
  EXPECT_TRUE(ok(driver().mem_unmap(pointer, kPiece)));
  EXPECT_TRUE(ok(driver().mem_address_free(pointer, kPiece)));
  EXPECT_TRUE(ok(driver().mem_release(handle)));
}

// The stand-in does other work before such a call begins.
TEST_F(Streams, CallsBeginLateIfASettingAsksForIt) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_DELAYS", "cuMemAlloc:100,cuMemUnmap:1"}});
  const std::uint64_t begin = monotonic_ns();
  std::future<cuda::DevicePointer> allocated = std::async(std::launch::async, [&] {
    EXPECT_TRUE(ok(driver().ctx_set_current(context())));
    return allocate(64);
  });
  const cuda::Stream stream = make_stream();
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_NE(allocated.get(), 0U);
  EXPECT_GE(monotonic_ns() - begin, 100'000'000U);
}

TEST_F(Streams, WorkOfOneStreamIsInOrder) {
  start();
  const cuda::Stream stream = make_stream();
  const cuda::DevicePointer words = allocate(400);
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 5, 100, stream)));
  ASSERT_TRUE(ok(launch(kernel("add"), 4, 32, stream, words, 100U, 3U)));
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 1, 1, stream)));
  ASSERT_TRUE(ok(launch(kernel("add"), 4, 32, stream, words, 100U, 10U)));
  const std::vector<unsigned> found = words_at(words, 100, stream);
  EXPECT_EQ(found.front(), 11U);
  EXPECT_THAT(std::vector<unsigned>(found.begin() + 1, found.end()), Each(18U));
}

TEST_F(Streams, AnEventOrdersTwoStreams) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "3"}});
  const cuda::Stream first = make_stream(), second = make_stream();
  const cuda::DevicePointer words = allocate(64);
  const cuda::Kernel add = kernel("add");
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 0, 16, first)));
  const WaitingKernel waiting = launch_waiting_kernel(first);
  ASSERT_TRUE(ok(launch(add, 1, 16, first, words, 16U, 1U)));
  const cuda::Event event = make_event();
  EXPECT_TRUE(ok(driver().event_query(event))) << "an event that was not recorded is complete";
  ASSERT_TRUE(ok(driver().event_record(event, first)));
  ASSERT_TRUE(ok(driver().stream_wait_event(second, event, 0)));
  ASSERT_TRUE(ok(launch(add, 1, 16, second, words, 16U, 20U)));
  EXPECT_EQ(driver().event_query.code(event), DriverCode::not_ready);
  EXPECT_EQ(driver().stream_query.code(second), DriverCode::not_ready);
  waiting.let_end();
  ASSERT_TRUE(ok(driver().event_synchronize(event)));
  EXPECT_THAT(words_at(words, 16, second), Each(21U));
  EXPECT_TRUE(ok(driver().stream_query(second)));
  EXPECT_TRUE(ok(driver().event_destroy(event)));
}

TEST_F(Streams, ALaunchCompletionEventComesOnceAllBlocksHaveBegun) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_MULTIPROCESSORS", "1"}});
  const cuda::Stream first = make_stream(), second = make_stream(), third = make_stream();
  const cuda::Event begun = make_event();
  const auto launch_with_event = [&](cuda::Kernel wanted, unsigned blocks, unsigned threads, cuda::Stream stream, void** values) {
    cuda::LaunchAttribute attribute;
    attribute.event = begun;
    cuda::LaunchConfiguration configuration;
    configuration.grid_x = blocks;
    configuration.block_x = threads;
    configuration.stream = stream;
    configuration.attributes = &attribute;
    configuration.attribute_count = 1;
    return driver().launch_kernel_ex(&configuration, wanted, values, nullptr);
  };
  // The GPU holds two blocks of 1024 threads. The first kernel takes one, and two of the second do not fit beside it.
  unsigned* words = pinned_words(4);
  unsigned *flag = words, *ended = words + 1, *other_flag = words + 2, *other_ended = words + 3;
  const cuda::Kernel waiting = kernel("wait_for_flag");
  void* values[] = {&flag, &ended};
  ASSERT_TRUE(ok(launch_with_event(waiting, 1, 1024, first, values)));
  EXPECT_TRUE(ok(driver().event_synchronize(begun))) << "the kernel has begun, and waits";
  EXPECT_EQ(driver().stream_query.code(first), DriverCode::not_ready);
  void* other_values[] = {&other_flag, &other_ended};
  ASSERT_TRUE(ok(launch_with_event(waiting, 2, 1024, second, other_values)));
  ASSERT_TRUE(ok(driver().stream_wait_event(third, begun, 0)));
  const std::vector<unsigned> nothing = words_at(allocate(4), 1, make_stream());  // time passes
  EXPECT_EQ(driver().event_query.code(begun), DriverCode::not_ready) << "one of its two blocks has no place";
  __atomic_store_n(flag, 1U, __ATOMIC_RELEASE);
  EXPECT_TRUE(ok(driver().event_synchronize(begun)));
  EXPECT_TRUE(ok(driver().stream_synchronize(third)));
  EXPECT_EQ(driver().stream_query.code(second), DriverCode::not_ready);
  __atomic_store_n(other_flag, 1U, __ATOMIC_RELEASE);
  EXPECT_TRUE(ok(driver().stream_synchronize(second)));
  EXPECT_TRUE(ok(driver().event_destroy(begun)));
}

TEST_F(Streams, HostFunctionsRunInOrderAndMayNotCallTheDriver) {
  start();
  struct Seen {
    const cuda::Driver* driver = nullptr;
    unsigned* word = nullptr;
    unsigned value = 0;
    DriverCode code{};
  };
  const cuda::Stream stream = make_stream();
  unsigned* const word = pinned_words(1);
  Seen seen{&driver(), word};
  ASSERT_TRUE(ok(launch(kernel("add"), 1, 1, stream, word, 1U, 4U)));
  ASSERT_TRUE(ok(driver().launch_host_func(
      stream,
      [](void* argument) {
        auto& into = *static_cast<Seen*>(argument);
        into.value = *into.word;
        into.code = into.driver->stream_query.code(nullptr);
        *into.word = 100;
      },
      &seen)));
  ASSERT_TRUE(ok(launch(kernel("add"), 1, 1, stream, word, 1U, 5U)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_EQ(seen.value, 4U);
  EXPECT_EQ(seen.code, DriverCode::not_permitted);
  EXPECT_EQ(*word, 105U);
}

TEST_F(Streams, TheLegacyStreamWaitsForBlockingStreamsOnly) {
  start();
  const cuda::Stream blocking = make_stream(0), other = make_stream(0), apart = make_stream();
  const cuda::DevicePointer words = allocate(8);
  const WaitingKernel waiting = launch_waiting_kernel(blocking);
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 1, 1, nullptr)));
  ASSERT_TRUE(ok(driver().memset_d32_async(words + 4, 2, 1, other)));
  EXPECT_EQ(driver().stream_query.code(nullptr), DriverCode::not_ready);
  EXPECT_EQ(driver().stream_query.code(other), DriverCode::not_ready) << "it waits for the legacy stream";
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 3, 1, apart)));
  EXPECT_TRUE(ok(driver().stream_synchronize(apart)));
  EXPECT_EQ(waiting.has_ended(), 0U);
  waiting.let_end();
  ASSERT_TRUE(ok(driver().stream_synchronize(nullptr)));
  ASSERT_TRUE(ok(driver().stream_synchronize(other)));
  EXPECT_THAT(words_at(words, 2, apart), ElementsAre(1U, 2U));
}

TEST_F(Streams, ValuesInMemoryAreWrittenAndWaitedFor) {
  start();
  const cuda::Stream first = make_stream(), second = make_stream();
  unsigned* const words = pinned_words(8);
  const auto at = [&](int i) { return reinterpret_cast<cuda::DevicePointer>(words + i); };
  ASSERT_TRUE(ok(driver().stream_wait_value32(first, at(0), 5, cuda::kWaitGreaterOrEqual)));
  ASSERT_TRUE(ok(driver().stream_write_value64(first, at(2), 1ULL << 40, 0)));
  ASSERT_TRUE(ok(driver().stream_wait_value64(second, at(2), 1ULL << 40, cuda::kWaitEqual)));
  ASSERT_TRUE(ok(driver().stream_write_value32(second, at(4), 77, 0)));
  EXPECT_EQ(driver().stream_query.code(second), DriverCode::not_ready);
  __atomic_store_n(words, 6U, __ATOMIC_RELEASE);
  ASSERT_TRUE(ok(driver().stream_synchronize(second)));
  EXPECT_EQ(words[4], 77U);
}

TEST_F(Streams, StreamsThatShareAQueueHoldEachOtherUp) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_QUEUES", "2"}});
  const cuda::Stream first = make_stream(), second = make_stream(), third = make_stream();  // the first and the third share one
  unsigned* const words = pinned_words(3);
  const auto at = [&](int i) { return reinterpret_cast<cuda::DevicePointer>(words + i); };
  ASSERT_TRUE(ok(driver().stream_wait_value32(first, at(0), 1, cuda::kWaitEqual)));
  ASSERT_TRUE(ok(driver().memset_d32_async(at(1), 1, 1, first)));
  ASSERT_TRUE(ok(driver().memset_d32_async(at(2), 1, 1, third)));
  ASSERT_TRUE(ok(driver().memset_d32_async(at(1), 5, 1, second)));
  ASSERT_TRUE(ok(driver().stream_synchronize(second)));
  EXPECT_EQ(words[1], 5U);
  EXPECT_EQ(driver().stream_query.code(third), DriverCode::not_ready);
  __atomic_store_n(words, 1U, __ATOMIC_RELEASE);
  ASSERT_TRUE(ok(driver().stream_synchronize(third)));
  EXPECT_EQ(words[1], 1U) << "its work starts after that of the first stream";
}

TEST_F(Streams, CallsThatWaitForKernels) {
  start();
  const cuda::DevicePointer memory = allocate(64);
  std::vector<char> registered(1 << 16);
  ASSERT_TRUE(ok(driver().mem_host_register(registered.data(), registered.size(), 0)));
  unsigned* const pinned = pinned_words(4);
  cuda::Module module = nullptr;
  expect_waits_for_kernel("free", [&] { return driver().mem_free(memory); });
  expect_waits_for_kernel("unregister", [&] { return driver().mem_host_unregister(registered.data()); });
  expect_waits_for_kernel("free of the host", [&] { return driver().mem_free_host(pinned); });
  expect_waits_for_kernel("load", [&] { return driver().module_load_data(&module, kTestKernels); });
  expect_waits_for_kernel("unload", [&] { return driver().module_unload(module); });
  expect_waits_for_kernel("synchronize", [&] { return driver().ctx_synchronize(); });
}

// NVIDIA's manual says that cuMemUnmap is synchronous in most cases, and nothing about cuIpcCloseMemHandle. The stand-in always
// waits, which is the worst that a driver can do to ranks whose kernels wait for each other.
TEST_F(Streams, UnmappingAndClosingWaitForKernels) {
  SETO_NEEDS_STAND_IN();
  constexpr std::size_t kPiece = 2 << 20;
  const Channel channel;
  testing::ChildProcess exporter([&] {
    start();
    Message message;
    EXPECT_TRUE(ok(driver().ipc_get_mem_handle(&message.handle, allocate(kPiece))));
    channel.send(1, message);
    (void)channel.receive(1);  // the memory stays until then
    return true;
  });
  start();
  cuda::DevicePointer imported = 0;
  ASSERT_TRUE(ok(driver().ipc_open_mem_handle(&imported, channel.receive(0).handle, cuda::kIpcLazyPeerAccess)));
  const cuda::AllocationProperties properties;
  cuda::MemoryHandle handle = 0;
  ASSERT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
  const cuda::DevicePointer mapped = map(handle, kPiece, 0);
  expect_waits_for_kernel("unmap", [&] { return driver().mem_unmap(mapped, kPiece); });
  expect_waits_for_kernel("close", [&] { return driver().ipc_close_mem_handle(imported); });
  EXPECT_TRUE(ok(driver().mem_address_free(mapped, kPiece)));
  EXPECT_TRUE(ok(driver().mem_release(handle)));
  channel.send(0, {});
  EXPECT_TRUE(exporter.wait());
}

TEST_F(Streams, LaunchesBlockIfTheUserSaysSo) {
  start({{"CUDA_LAUNCH_BLOCKING", "1"}});
  const cuda::Kernel waiting = kernel("wait_for_flag");
  unsigned* const words = pinned_words(2);
  const cuda::Stream stream = make_stream();
  std::future<void> returned = std::async(std::launch::async, [&] {
    EXPECT_TRUE(ok(driver().ctx_set_current(context())));
    EXPECT_TRUE(ok(launch(waiting, 1, 1, stream, words, words + 1)));
    EXPECT_EQ(__atomic_load_n(words + 1, __ATOMIC_ACQUIRE), 1U);
  });
  EXPECT_EQ(returned.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  __atomic_store_n(words, 1U, __ATOMIC_RELEASE);
  returned.get();
}

TEST_F(Streams, AWaitThatWouldLastForeverEnds) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_WAIT_SECONDS", "1"}});
  const cuda::Stream stream = make_stream();
  const WaitingKernel waiting = launch_waiting_kernel(stream);
  const Status status = driver().stream_synchronize(stream);
  EXPECT_THAT(std::string(status.text()),
              ::testing::AllOf(::testing::HasSubstr("CUDA_ERROR_TIMEOUT"), ::testing::HasSubstr("kernel wait_for_flag"),
                               ::testing::HasSubstr("ld.acquire.sys.global.u32")));
  waiting.let_end();
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
}

}  // namespace
}  // namespace seto::software_gpu::driver

// Multicast objects: their rules, kernels that use them, and processes that share them.
#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "src/base/fd.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/software_gpu/driver/process_channel.h"
#include "tests/support/child_process.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::DriverCode;
using cuda::MemoryHandle;
using ::testing::HasSubstr;

constexpr std::size_t kPiece = 2 << 20;
constexpr cuda::HandleType kByFile = cuda::HandleType::posix_file_descriptor;

// Thread i of block 0 adds word i of all GPUs, and stores the sum to all of them.
constexpr const char* kSum = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 words)
{
.reg .b32 %r<4>; .reg .b64 %d<4>;
ld.param.u64 %d0, [words]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
multimem.ld_reduce.weak.global.add.u32 %r1, [%d0];
multimem.st.weak.global.u32 [%d0], %r1;
ret;
}
)";

class Multicast : public StandInTest {
 protected:
  void SetUp() override { SETO_NEEDS_STAND_IN(); }

  static cuda::MulticastProperties properties(unsigned gpus, std::size_t size = kPiece) {
    return {.devices = gpus, .size = size, .handle_types = static_cast<unsigned long long>(kByFile)};
  }
  [[nodiscard]] MemoryHandle create(unsigned gpus) const {
    MemoryHandle object = 0;
    const cuda::MulticastProperties wanted = properties(gpus);
    EXPECT_TRUE(ok(driver().multicast_create(&object, &wanted)));
    return object;
  }
  [[nodiscard]] MemoryHandle memory_of(int gpu, cuda::HandleType type = kByFile) const {
    MemoryHandle memory = 0;
    const cuda::AllocationProperties wanted{.handle_types = type, .location = {.id = gpu}};
    EXPECT_TRUE(ok(driver().mem_create(&memory, kPiece, &wanted, 0)));
    return memory;
  }
  // The parent makes an object of two GPUs, hands it over and adds GPU 0; the child takes it and adds GPU 1.
  [[nodiscard]] MemoryHandle share_with_child(const Channel& channel) {
    start({{"SOFTWARE_GPU_COUNT", "2"}});
    const MemoryHandle object = create(2);
    int file = -1;
    EXPECT_TRUE(ok(driver().mem_export(&file, object, kByFile, 0)));
    const Fd owner(file);
    channel.send(0, {}, file);
    EXPECT_TRUE(ok(driver().multicast_add_device(object, 0)));
    return object;
  }
  [[nodiscard]] MemoryHandle join_as_child(const Channel& channel) {
    Fd file;
    (void)channel.receive(1, &file);
    start({{"SOFTWARE_GPU_COUNT", "2"}});
    MemoryHandle object = 0;
    EXPECT_TRUE(ok(driver().mem_import(&object, reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get())), kByFile)));
    EXPECT_TRUE(ok(driver().multicast_add_device(object, 1)));
    return object;
  }
  [[nodiscard]] cuda::Kernel sum() const {
    cuda::Module module = nullptr;
    cuda::Kernel found = nullptr;
    EXPECT_TRUE(ok(driver().module_load_data(&module, kSum)));
    EXPECT_TRUE(ok(driver().module_get_function(&found, module, "sum")));
    return found;
  }
  void fill(DevicePointer memory, unsigned value) const {
    const cuda::Stream stream = make_stream();
    EXPECT_TRUE(ok(driver().memset_d32_async(memory, value, 32, stream)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  }
  [[nodiscard]] unsigned first_word(DevicePointer memory) const { return words_at(memory, 1, make_stream())[0]; }
};

TEST_F(Multicast, AKernelReadsAndWritesTheMemoryOfAllGpus) {
  start({{"SOFTWARE_GPU_COUNT", "3"}});
  const MemoryHandle object = create(3);
  std::array<DevicePointer, 3> own{};
  for (int gpu = 0; gpu < 3; ++gpu) EXPECT_TRUE(ok(driver().multicast_add_device(object, gpu)));
  for (int gpu = 0; gpu < 3; ++gpu) {
    const MemoryHandle memory = memory_of(gpu);
    EXPECT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));
    own[static_cast<std::size_t>(gpu)] = map(memory, kPiece, gpu);
    fill(own[static_cast<std::size_t>(gpu)], 10U + static_cast<unsigned>(gpu));
  }
  const cuda::Stream stream = make_stream();
  EXPECT_TRUE(ok(launch(sum(), 1, 32, stream, map(object, kPiece, 0))));
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  for (const DevicePointer memory : own) EXPECT_EQ(first_word(memory), 33U);
  EXPECT_TRUE(ok(driver().multicast_unbind(object, 1, 0, kPiece)));
  EXPECT_TRUE(ok(launch(sum(), 1, 32, stream, map(object, kPiece, 0))));
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()), HasSubstr("memory of 2 of its 3 GPUs"));
}

TEST_F(Multicast, BindingAndMappingWaitForAllGpus) {
  start({{"SOFTWARE_GPU_COUNT", "2"}, {"SOFTWARE_GPU_WAIT_SECONDS", "30"}});
  const MemoryHandle object = create(2), memory = memory_of(0);
  EXPECT_TRUE(ok(driver().multicast_add_device(object, 0)));
  std::thread late([&] { EXPECT_TRUE(ok(driver().multicast_add_device(object, 1))); });
  EXPECT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));
  late.join();

  const MemoryHandle incomplete = create(2);
  EXPECT_TRUE(ok(driver().multicast_add_device(incomplete, 0)));
  DevicePointer pointer = 0;
  EXPECT_TRUE(ok(driver().mem_address_reserve(&pointer, kPiece, 0, 0, 0)));
  std::thread later([&] { EXPECT_TRUE(ok(driver().multicast_add_device(incomplete, 1))); });
  EXPECT_TRUE(ok(driver().mem_map(pointer, kPiece, 0, incomplete, 0)));
  later.join();
}

TEST_F(Multicast, BindingWithoutAGpuEndsWithATimeout) {
  start({{"SOFTWARE_GPU_COUNT", "2"}, {"SOFTWARE_GPU_WAIT_SECONDS", "0"}});
  const MemoryHandle object = create(2), memory = memory_of(0);
  EXPECT_TRUE(ok(driver().multicast_add_device(object, 0)));
  EXPECT_EQ(driver().multicast_bind_mem.code(object, 0, memory, 0, kPiece, 0), DriverCode::timeout);
}

TEST_F(Multicast, WrongCallsAreRefused) {
  start({{"SOFTWARE_GPU_COUNT", "3"}});
  cuda::MulticastProperties wrong = properties(4);
  MemoryHandle object = 0;
  EXPECT_EQ(driver().multicast_create.code(&object, &wrong), DriverCode::invalid_value) << "more GPUs than there are";
  wrong = properties(2, 4096);
  EXPECT_EQ(driver().multicast_create.code(&object, &wrong), DriverCode::invalid_value) << "no whole piece";
  std::size_t unit = 0;
  wrong = properties(2);
  EXPECT_TRUE(ok(driver().multicast_get_granularity(&unit, &wrong, cuda::Granularity::recommended)));
  EXPECT_EQ(unit, kPiece);
  wrong.flags = 1;
  EXPECT_EQ(driver().multicast_get_granularity.code(&unit, &wrong, cuda::Granularity::minimum), DriverCode::invalid_value);

  object = create(2);
  const MemoryHandle memory = memory_of(0), other = memory_of(2), closed = memory_of(0, cuda::HandleType::none);
  const auto bind = [&](std::size_t offset, MemoryHandle what, std::size_t place, std::size_t size) {
    return driver().multicast_bind_mem.code(object, offset, what, place, size, 0);
  };
  EXPECT_TRUE(ok(driver().multicast_add_device(object, 0)));
  EXPECT_EQ(driver().multicast_add_device.code(object, 0), DriverCode::invalid_device) << "it was added before";
  EXPECT_EQ(driver().multicast_add_device.code(memory, 1), DriverCode::invalid_value) << "memory is no object";
  EXPECT_TRUE(ok(driver().multicast_add_device(object, 1)));
  EXPECT_EQ(driver().multicast_add_device.code(object, 2), DriverCode::invalid_value) << "it has all";
  EXPECT_EQ(bind(4096, memory, 0, kPiece), DriverCode::invalid_value);
  EXPECT_EQ(bind(0, memory, 4096, kPiece), DriverCode::invalid_value);
  EXPECT_EQ(bind(0, memory, 0, 2 * kPiece), DriverCode::invalid_value);
  EXPECT_EQ(bind(0, other, 0, kPiece), DriverCode::invalid_device) << "the memory of a GPU that was not added";
  EXPECT_EQ(bind(0, closed, 0, kPiece), DriverCode::invalid_value) << "memory without handles";
  EXPECT_EQ(bind(0, object, 0, kPiece), DriverCode::invalid_value) << "an object is no memory";
  EXPECT_EQ(bind(0, memory, 0, kPiece), DriverCode::success);
  EXPECT_EQ(bind(0, memory_of(0), 0, kPiece), DriverCode::invalid_value) << "memory of this GPU is there";
  EXPECT_EQ(driver().multicast_unbind.code(object, 1, 0, kPiece), DriverCode::invalid_value) << "nothing of it is bound";
  EXPECT_EQ(driver().multicast_unbind.code(object, 0, 0, kPiece), DriverCode::success);
  EXPECT_EQ(bind(0, memory, 0, kPiece), DriverCode::success) << "it was unbound";

  const DevicePointer mapped = map(object, kPiece, 0);
  const cuda::MemoryAccess access{.location = {.id = 2}};
  EXPECT_EQ(driver().mem_set_access.code(mapped, kPiece, &access, 1), DriverCode::invalid_device);
  EXPECT_EQ(driver().memset_d32_async.code(mapped, 0, 32, make_stream()), DriverCode::invalid_value) << "only kernels access it";
  EXPECT_TRUE(ok(driver().mem_unmap(mapped, kPiece)));
  EXPECT_TRUE(ok(driver().mem_release(object)));
}

TEST_F(Multicast, GpusAndDriversMayLackIt) {
  const auto supported = [&] {
    int value = -1;
    EXPECT_TRUE(ok(driver().device_get_attribute(&value, cuda::DeviceAttribute::multicast, 0)));
    return value;
  };
  start({});
  EXPECT_EQ(supported(), 1);
  start({{"SOFTWARE_GPU_CAPABILITY", "80"}});
  EXPECT_EQ(supported(), 0);
  MemoryHandle object = 0;
  const cuda::MulticastProperties wanted = properties(1);
  EXPECT_EQ(driver().multicast_create.code(&object, &wanted), DriverCode::not_supported);
  EXPECT_TRUE(driver().multicast_create.is_found());
  start({{"SOFTWARE_GPU_CAPABILITY", "90"}, {"SOFTWARE_GPU_MULTICAST", "absent"}});
  EXPECT_EQ(supported(), 0);
  EXPECT_FALSE(driver().multicast_create.is_found());
  EXPECT_FALSE(driver().multicast_get_granularity.is_found());
}

// The child adds and binds memory of GPU 1; both then sum, and each sees what the other's kernel has stored.
TEST_F(Multicast, ProcessesShareAnObject) {
  const Channel channel;
  testing::ChildProcess child([&] {
    const MemoryHandle object = join_as_child(channel);
    const MemoryHandle memory = memory_of(1);
    EXPECT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));
    const DevicePointer own = map(memory, kPiece, 1), all = map(object, kPiece, 1);
    fill(own, 5);
    channel.send(1, {});
    (void)channel.receive(1);
    EXPECT_EQ(first_word(own), 12U);
    cuda::Context second = nullptr;
    EXPECT_TRUE(ok(driver().device_primary_ctx_retain(&second, 1)));
    EXPECT_TRUE(ok(driver().ctx_set_current(second)));
    const cuda::Stream stream = make_stream();
    EXPECT_TRUE(ok(launch(sum(), 1, 32, stream, all)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
    channel.send(1, {});
    (void)channel.receive(1);
    return !HasFailure();
  });
  const MemoryHandle object = share_with_child(channel);
  const MemoryHandle memory = memory_of(0);
  ASSERT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));  // it waits for the child
  const DevicePointer own = map(memory, kPiece, 0), all = map(object, kPiece, 0);
  fill(own, 7);
  (void)channel.receive(0);
  const cuda::Stream stream = make_stream();
  EXPECT_TRUE(ok(launch(sum(), 1, 32, stream, all)));
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_EQ(first_word(own), 12U);
  channel.send(0, {});
  (void)channel.receive(0);
  EXPECT_EQ(first_word(own), 24U);
  channel.send(0, {});
  EXPECT_TRUE(child.wait());
}

TEST_F(Multicast, MemoryOfAProcessThatHasEndedIsStillRead) {
  const Channel channel;
  testing::ChildProcess child([&] {
    const MemoryHandle object = join_as_child(channel);
    const MemoryHandle memory = memory_of(1);
    fill(map(memory, kPiece, 1), 5);
    EXPECT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));
    channel.send(1, {});
    (void)channel.receive(1);
    return !HasFailure();
  });
  const MemoryHandle object = share_with_child(channel);
  const MemoryHandle memory = memory_of(0);
  ASSERT_TRUE(ok(driver().multicast_bind_mem(object, 0, memory, 0, kPiece, 0)));
  const DevicePointer own = map(memory, kPiece, 0);
  fill(own, 7);
  (void)channel.receive(0);
  const DevicePointer all = map(object, kPiece, 0);
  channel.send(0, {});
  ASSERT_TRUE(child.wait());
  const cuda::Stream stream = make_stream();
  EXPECT_TRUE(ok(launch(sum(), 1, 32, stream, all)));
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_EQ(first_word(own), 12U);
}

}  // namespace
}  // namespace seto::software_gpu::driver

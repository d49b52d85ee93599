// Memory of one process: allocation, peers, mapping, attributes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>

#include "src/device/cuda/direct_access.h"
#include "tests/software_gpu/driver/driver_test.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::DriverCode;
using cuda::PointerAttribute;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kPiece = 2 << 20;

class Memory : public StandInTest {
 protected:
  void start_two(Variables variables = {}) {
    variables["SOFTWARE_GPU_COUNT"] = "2";
    start(variables);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(ok(driver().device_primary_ctx_retain(&other_, 1)));
  }
  void use(cuda::Context context) { ASSERT_TRUE(ok(driver().ctx_set_current(context))); }
  [[nodiscard]] cuda::Context other() const { return other_; }

  // Memory of a GPU at an address of its own, which the GPU may access.
  [[nodiscard]] DevicePointer map_piece(int gpu, cuda::MemoryHandle& handle) const {
    const cuda::AllocationProperties properties{.location = {.id = gpu}};
    DevicePointer pointer = 0;
    EXPECT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
    EXPECT_TRUE(ok(driver().mem_address_reserve(&pointer, kPiece, 0, 0, 0)));
    EXPECT_TRUE(ok(driver().mem_map(pointer, kPiece, 0, handle, 0)));
    const cuda::MemoryAccess access{.location = {.id = gpu}};
    EXPECT_TRUE(ok(driver().mem_set_access(pointer, kPiece, &access, 1)));
    return pointer;
  }

 private:
  cuda::Context other_ = nullptr;
};

TEST_F(Memory, KernelsUseMemoryOfAPeerOnceItIsEnabled) {
  SETO_NEEDS_GPUS(2);
  start_two();
  use(other());
  const DevicePointer theirs = allocate(128);
  const cuda::Stream their_stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(theirs, 21, 32, their_stream)));
  ASSERT_TRUE(ok(driver().stream_synchronize(their_stream)));
  use(context());
  const DevicePointer mine = allocate(128);
  const cuda::Stream stream = make_stream();
  int can = 0;
  ASSERT_TRUE(ok(driver().device_can_access_peer(&can, 0, 1)));
  ASSERT_EQ(can, 1);
  ASSERT_TRUE(ok(driver().ctx_enable_peer_access(other(), 0)));
  EXPECT_EQ(driver().ctx_enable_peer_access.code(other(), 0), DriverCode::peer_access_already_enabled);
  ASSERT_TRUE(ok(launch(kernel("twice"), 1, 32, stream, mine, theirs, 32U)));
  EXPECT_THAT(words_at(mine, 32, stream), Each(42U));
  EXPECT_EQ(driver().stream_query.code(their_stream), DriverCode::invalid_handle) << "a stream of another context";
}

TEST_F(Memory, AKernelMayNotUseMemoryOfAPeerBefore) {
  SETO_NEEDS_GPUS(2);
  start_two();
  use(other());
  const DevicePointer theirs = allocate(128);
  use(context());
  const DevicePointer mine = allocate(128);
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(launch(kernel("twice"), 1, 32, stream, mine, theirs, 32U)));
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("GPU 0 has no access to memory of cuMemAlloc of GPU 1")));
}

TEST_F(Memory, GpusWithoutAPathHaveNoPeerAccess) {
  SETO_NEEDS_STAND_IN();
  start_two({{"SOFTWARE_GPU_PEERS", "none"}});
  int can = 1;
  ASSERT_TRUE(ok(driver().device_can_access_peer(&can, 0, 1)));
  EXPECT_EQ(can, 0);
  const Status status = driver().ctx_enable_peer_access(other(), 0);
  EXPECT_THAT(std::string(status.text()),
              AllOf(HasSubstr("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"), HasSubstr("data goes through host memory")));
  use(other());
  const DevicePointer theirs = allocate(64);
  const cuda::Stream their_stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(theirs, 3, 16, their_stream)));
  ASSERT_TRUE(ok(driver().stream_synchronize(their_stream)));
  use(context());
  const DevicePointer mine = allocate(64);
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().memcpy_dtod_async(mine, theirs, 64, stream))) << "the driver copies through the host";
  EXPECT_THAT(words_at(mine, 16, stream), Each(3U));
}

TEST_F(Memory, MappedMemoryIsAccessibleWhereItWasPermitted) {
  SETO_NEEDS_GPUS(2);
  start_two();
  cuda::MemoryHandle handle = 0;
  const DevicePointer piece = map_piece(1, handle);
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(piece, 8, 64, stream)));
  const DevicePointer mine = allocate(256);
  const cuda::MemoryAccess access{.location = {.id = 0}};
  ASSERT_TRUE(ok(driver().mem_set_access(piece, kPiece, &access, 1)));
  ASSERT_TRUE(ok(launch(kernel("twice"), 2, 32, stream, mine, piece, 64U)));
  EXPECT_THAT(words_at(mine, 64, stream), Each(16U));
  ASSERT_TRUE(ok(driver().mem_unmap(piece, kPiece)));
  ASSERT_TRUE(ok(driver().mem_release(handle)));
  EXPECT_EQ(driver().memset_d32_async.code(piece, 8, 64, stream), DriverCode::invalid_value) << "it is gone";
  EXPECT_TRUE(ok(driver().mem_address_free(piece, kPiece)));
}

TEST_F(Memory, MistakesOfMappingAreErrors) {
  start();
  cuda::MemoryHandle handle = 0;
  const DevicePointer piece = map_piece(0, handle);
  EXPECT_EQ(driver().mem_map.code(piece, kPiece, 0, handle, 0), DriverCode::invalid_value) << "mapped twice";
  EXPECT_EQ(driver().mem_address_free.code(piece, kPiece), DriverCode::invalid_value) << "still mapped";
  EXPECT_EQ(driver().mem_unmap.code(piece, kPiece / 2), DriverCode::invalid_value) << "a part";
  int file = -1;
  EXPECT_EQ(driver().mem_export.code(&file, handle, cuda::HandleType::posix_file_descriptor, 0), DriverCode::invalid_value)
      << "not created for export";
  const cuda::AllocationProperties properties;
  EXPECT_EQ(driver().mem_create.code(&handle, 4096, &properties, 0), DriverCode::invalid_value) << "below the granularity";
  std::size_t granularity = 0;
  ASSERT_TRUE(ok(driver().mem_get_granularity(&granularity, &properties, cuda::Granularity::minimum)));
  EXPECT_EQ(granularity, kPiece);
}

TEST_F(Memory, AttributesTellWhatAnAddressIs) {
  SETO_NEEDS_GPUS(2);
  start_two();
  const DevicePointer memory = allocate(1000);
  unsigned* const pinned = pinned_words(10);
  unsigned type = 0;
  int device = -1;
  DevicePointer begin = 0;
  std::size_t size = 0;
  std::array attributes{PointerAttribute::memory_type, PointerAttribute::device, PointerAttribute::range_start,
                        PointerAttribute::range_size};
  std::array<void*, 4> into{&type, &device, &begin, &size};
  ASSERT_TRUE(ok(driver().pointer_get_attributes(4, attributes.data(), into.data(), memory + 500)));
  EXPECT_EQ(type, static_cast<unsigned>(cuda::MemoryType::device));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(begin, memory);
  EXPECT_EQ(size, 1000U);
  ASSERT_TRUE(ok(driver().pointer_get_attribute(&type, PointerAttribute::memory_type, reinterpret_cast<DevicePointer>(pinned))));
  EXPECT_EQ(type, static_cast<unsigned>(cuda::MemoryType::host));
  int local = 0;
  const auto unknown = reinterpret_cast<DevicePointer>(&local);
  EXPECT_EQ(driver().pointer_get_attribute.code(&type, PointerAttribute::memory_type, unknown), DriverCode::invalid_value);
  ASSERT_TRUE(ok(driver().pointer_get_attributes(4, attributes.data(), into.data(), unknown)));
  EXPECT_EQ(type, 0U);
  unsigned long long first = 0, second = 0;
  ASSERT_TRUE(ok(driver().pointer_get_attribute(&first, PointerAttribute::buffer_id, memory)));
  ASSERT_TRUE(ok(driver().mem_free(memory)));
  ASSERT_TRUE(ok(driver().pointer_get_attribute(&second, PointerAttribute::buffer_id, allocate(1000))));
  EXPECT_NE(first, second) << "the identity of a buffer does not come back";
}

TEST_F(Memory, AGpuHasNoMoreThanItsMemory) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_MEMORY", "1048576"}});
  const DevicePointer half = allocate(1 << 19);
  std::size_t free = 0, total = 0;
  ASSERT_TRUE(ok(driver().mem_get_info(&free, &total)));
  EXPECT_EQ(free, 1U << 19);
  EXPECT_EQ(total, 1U << 20);
  DevicePointer more = 0;
  const Status status = driver().mem_alloc(&more, (1 << 19) + 1);
  EXPECT_THAT(std::string(status.text()), AllOf(HasSubstr("cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2, "),
                                                HasSubstr("524288 of 1048576 are in use"), HasSubstr("nvidia-smi")));
  ASSERT_TRUE(ok(driver().mem_free(half)));
  EXPECT_NE(allocate(1 << 20), 0U);
  EXPECT_EQ(driver().mem_free.code(half), DriverCode::invalid_value) << "freed twice";
}

TEST_F(Memory, RegisteredMemoryIsThatOfTheHost) {
  start();
  std::vector<unsigned> words(64, 5);
  ASSERT_TRUE(ok(driver().mem_host_register(words.data(), 256, cuda::kHostRegisterDeviceMap)));
  EXPECT_EQ(driver().mem_host_register.code(words.data() + 8, 32, 0), DriverCode::host_memory_already_registered);
  DevicePointer pointer = 0;
  ASSERT_TRUE(ok(driver().mem_host_get_device_pointer(&pointer, words.data(), 0)));
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(launch(kernel("add"), 2, 32, stream, pointer, 64U, 2U)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_THAT(words, Each(7U));
  ASSERT_TRUE(ok(driver().mem_host_unregister(words.data())));
  EXPECT_EQ(driver().mem_host_unregister.code(words.data()), DriverCode::host_memory_not_registered);
}

// The range begins behind other memory of its allocation.
TEST_F(Memory, IsHandedToOtherDevicesAsADmaBuf) {
  SETO_NEEDS_GPUS(1);
  start();
  const auto access = cuda::direct_access_of(driver(), 0);
  ASSERT_TRUE(ok(access.status()));
  if (!access.value().dma_buf) {
    ASSERT_TRUE(on_system_driver()) << "the stand-in exports memory as a dma-buf";
    GTEST_SKIP() << "skipped: needs a GPU whose driver exports memory as a dma-buf";
  }
  constexpr std::size_t kGpuPage = 64 << 10;
  const DevicePointer range = (allocate(3 * kGpuPage) + kGpuPage) / kGpuPage * kGpuPage;
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(range, 77, kGpuPage / 4, stream)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  const auto file = cuda::export_dma_buf(driver(), range, kGpuPage);
  ASSERT_TRUE(ok(file.status()));
  EXPECT_FALSE(cuda::export_dma_buf(driver(), range + 512, kGpuPage).ok()) << "not whole pages";
  if (access.value().flush != cuda::DirectFlush::impossible) {
    EXPECT_TRUE(ok(cuda::flush_direct_writes(driver(), access.value().flush)));
  }
  if (on_system_driver()) return;  // a real one cannot be mapped by the host
  unsigned word = 0;
  const off_t begin = lseek(file.value().get(), 0, SEEK_CUR);
  ASSERT_EQ(pread(file.value().get(), &word, sizeof word, begin), static_cast<ssize_t>(sizeof word));
  EXPECT_EQ(word, 77U);
}

}  // namespace
}  // namespace seto::software_gpu::driver

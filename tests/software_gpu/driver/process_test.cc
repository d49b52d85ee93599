// Memory that two processes share: by file descriptor, and by legacy IPC.
#include <gmock/gmock.h>

#include <optional>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/software_gpu/driver/process_channel.h"
#include "tests/support/child_process.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::DriverCode;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kPiece = 2 << 20;
constexpr cuda::HandleType kByFile = cuda::HandleType::posix_file_descriptor;

// In both tests the process is forked before either uses the stand-in, as processes of a job are.
class Processes : public StandInTest {
 protected:
  [[nodiscard]] static void* as_argument(const Fd& file) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  }

  // Uses GPU 1, whose memory the parent does not see unless it is shared.
  [[nodiscard]] bool start_on_gpu_1() {
    start({{"SOFTWARE_GPU_COUNT", "2"}});
    cuda::Context second = nullptr;
    return !HasFailure() && driver().device_primary_ctx_retain(&second, 1).ok() && driver().ctx_set_current(second).ok();
  }
};

TEST_F(Processes, MemoryIsSharedByFileDescriptor) {
  const Channel channel;
  testing::ChildProcess child([&] {
    if (!start_on_gpu_1()) return false;
    Fd file;
    (void)channel.receive(1, &file);
    cuda::MemoryHandle handle = 0;
    EXPECT_TRUE(ok(driver().mem_import(&handle, as_argument(file), kByFile)));
    file.close();
    const DevicePointer memory = map(handle, kPiece, 1);
    const cuda::Stream stream = make_stream();
    const cuda::Kernel waiting = kernel("wait_for_flag");
    // Word 0 is the flag that the parent's kernel sets; word 1 answers.
    EXPECT_TRUE(ok(launch(waiting, 1, 32, stream, memory, memory + 4)));
    channel.send(1, {.step = 1});
    EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
    EXPECT_TRUE(ok(driver().mem_unmap(memory, kPiece)));
    EXPECT_TRUE(ok(driver().mem_release(handle)));
    return true;
  });
  start({{"SOFTWARE_GPU_COUNT", "2"}});
  const cuda::AllocationProperties properties{.handle_types = kByFile};
  cuda::MemoryHandle handle = 0;
  ASSERT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
  const DevicePointer memory = map(handle, kPiece, 0);
  const cuda::Kernel add = kernel("add"), waiting = kernel("wait_for_flag");
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(memory, 0, 64, stream)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  int file = -1;
  ASSERT_TRUE(ok(driver().mem_export(&file, handle, kByFile, 0)));
  channel.send(0, {}, file);
  const Fd owner(file);
  EXPECT_EQ(channel.receive(0).step, 1);
  ASSERT_TRUE(ok(launch(add, 1, 1, stream, memory, 1U, 1U)));
  ASSERT_TRUE(ok(launch(waiting, 1, 32, stream, memory + 4, memory + 8)));
  EXPECT_THAT(words_at(memory, 3, stream), Each(1U)) << "the kernels of both processes have seen each other's stores";
  EXPECT_TRUE(child.wait());
}

TEST_F(Processes, MemoryIsSharedByIpc) {
  const Channel channel;
  testing::ChildProcess child([&] {
    if (!start_on_gpu_1()) return false;
    const Message message = channel.receive(1);
    DevicePointer memory = 0;
    EXPECT_TRUE(ok(driver().ipc_open_mem_handle(&memory, message.handle, cuda::kIpcLazyPeerAccess)));
    const cuda::Stream stream = make_stream();
    EXPECT_TRUE(ok(launch(kernel("add"), 1, 32, stream, memory, 32U, 40U)));
    EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
    EXPECT_TRUE(ok(driver().ipc_close_mem_handle(memory)));
    EXPECT_EQ(driver().ipc_close_mem_handle.code(memory), DriverCode::invalid_value);
    return true;
  });
  start({{"SOFTWARE_GPU_COUNT", "2"}});
  const DevicePointer memory = allocate(4096);
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(driver().memset_d32_async(memory, 2, 32, stream)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  Message message;
  ASSERT_TRUE(ok(driver().ipc_get_mem_handle(&message.handle, memory + 64)));
  channel.send(0, message);
  EXPECT_TRUE(child.wait());
  EXPECT_THAT(words_at(memory, 32, stream), Each(42U));

  DevicePointer again = 0;
  EXPECT_EQ(driver().ipc_open_mem_handle.code(&again, message.handle, cuda::kIpcLazyPeerAccess), DriverCode::invalid_context)
      << "a process does not open its own handle";
}

// The real driver leaves it open what a kernel finds there. Memory of a descriptor stays.
TEST_F(Processes, MemoryOfAProcessThatIsKilledStaysByDescriptorOnly) {
  const Channel channel;
  testing::ChildProcess child([&] {
    if (!start_on_gpu_1()) return false;
    Message message;
    EXPECT_TRUE(ok(driver().ipc_get_mem_handle(&message.handle, allocate(4096))));
    const cuda::AllocationProperties properties{.handle_types = kByFile, .location = {.id = 1}};
    cuda::MemoryHandle handle = 0;
    EXPECT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
    int file = -1;
    EXPECT_TRUE(ok(driver().mem_export(&file, handle, kByFile, 0)));
    channel.send(1, message, file);
    for (;;) ::pause();
    return true;
  });
  start({{"SOFTWARE_GPU_COUNT", "2"}});
  Fd file;
  const Message message = channel.receive(0, &file);
  cuda::MemoryHandle handle = 0;
  ASSERT_TRUE(ok(driver().mem_import(&handle, as_argument(file), kByFile)));
  const DevicePointer shared = map(handle, kPiece, 0);
  DevicePointer opened = 0;
  ASSERT_TRUE(ok(driver().ipc_open_mem_handle(&opened, message.handle, cuda::kIpcLazyPeerAccess)));
  const cuda::Kernel add = kernel("add");
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(launch(add, 1, 32, stream, opened, 32U, 1U)));
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
  child.kill_now();
  ASSERT_TRUE(ok(launch(add, 1, 32, stream, shared, 32U, 1U)));
  EXPECT_THAT(words_at(shared, 32, stream), Each(1U));
  Status status;  // the stand-in asks once in a millisecond
  for (const Deadline until = Deadline::after_ms(kDeadlineSeconds * 1'000); status.ok() && !until.passed();) {
    status = launch(add, 1, 32, stream, opened, 32U, 1U);
    if (status.ok()) status = driver().stream_synchronize(stream);
  }
  EXPECT_THAT(std::string(status.text()), HasSubstr("has ended, or freed it"));
}

TEST_F(Processes, MemoryOfIpcThatIsFreedIsGone) {
  const Channel channel;
  testing::ChildProcess child([&] {
    if (!start_on_gpu_1()) return false;
    const DevicePointer memory = allocate(4096);
    Message message;
    EXPECT_TRUE(ok(driver().ipc_get_mem_handle(&message.handle, memory)));
    channel.send(1, message);
    (void)channel.receive(1);
    EXPECT_TRUE(ok(driver().mem_free(memory)));
    channel.send(1, {});
    (void)channel.receive(1);
    return true;
  });
  start({{"SOFTWARE_GPU_COUNT", "2"}});
  DevicePointer opened = 0;
  ASSERT_TRUE(ok(driver().ipc_open_mem_handle(&opened, channel.receive(0).handle, cuda::kIpcLazyPeerAccess)));
  channel.send(0, {});
  (void)channel.receive(0);
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(launch(kernel("add"), 1, 32, stream, opened, 32U, 1U)));
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()), HasSubstr("has ended, or freed it"));
  channel.send(0, {});
  EXPECT_TRUE(child.wait());
}

TEST_F(Processes, MappedMemoryHasNoHandleOfIpc) {
  start();
  const cuda::AllocationProperties properties{.handle_types = kByFile};
  cuda::MemoryHandle handle = 0;
  ASSERT_TRUE(ok(driver().mem_create(&handle, kPiece, &properties, 0)));
  cuda::IpcMemoryHandle ipc;
  EXPECT_THAT(std::string(driver().ipc_get_mem_handle(&ipc, map(handle, kPiece, 0)).text()),
              HasSubstr("this memory cannot be shared by IPC: only memory of cudaMalloc can"));
}

TEST_F(Processes, ADescriptorOfAnythingElseIsRefused) {
  start();
  const Fd file(::dup(0));
  cuda::MemoryHandle handle = 0;
  EXPECT_THAT(std::string(driver().mem_import(&handle, as_argument(file), kByFile).text()),
              HasSubstr("is no memory of a GPU of this machine"));
}

TEST_F(Processes, AForkedProcessCannotUseTheDriver) {
  start();
  testing::ChildProcess child([&] {
    int count = 0;
    const Status status = driver().device_get_count(&count);
    EXPECT_THAT(std::string(status.text()), HasSubstr("start processes with spawn"));
    EXPECT_EQ(status.code(), seto::Code::invalid_usage);
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto::software_gpu::driver

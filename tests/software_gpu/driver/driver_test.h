#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/device/cuda/driver.h"
#include "tests/software_gpu/driver/test_kernels.h"

namespace seto::software_gpu::driver {

// Tests that load the stand-in as the library loads the real driver.

[[nodiscard]] inline std::string stand_in_file() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "driver/libcuda.so.1").string();
}

[[nodiscard]] inline ::testing::AssertionResult ok(const Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.text();
}

// Whether tests use the driver that the machine has, and its GPUs: `./dev test --gpu` sets this. Settings of the stand-in and
// injected errors do not exist there.
[[nodiscard]] inline bool on_system_driver() {
  const char* const choice = std::getenv("TEST_CUDA_DRIVER");
  return choice != nullptr && std::string(choice) == "system";
}

// The number of GPUs that the machine has. It initialises CUDA, so it is not for tests that fork.
[[nodiscard]] inline int system_gpus() {
  int count = 0;
  const auto opened = cuda::Driver::open();
  if (!opened.ok() || !opened.value()->init(0).ok() || !opened.value()->device_get_count(&count).ok()) return 0;
  return count;
}

#define SETO_NEEDS_STAND_IN()                           \
  if (::seto::software_gpu::driver::on_system_driver()) \
  GTEST_SKIP() << "skipped: needs the settings of the stand-in for the driver"
#define SETO_NEEDS_GPUS(number)                                                                                   \
  if (::seto::software_gpu::driver::on_system_driver() && ::seto::software_gpu::driver::system_gpus() < (number)) \
  GTEST_SKIP() << "skipped: needs " << (number) << " GPUs, this machine has " << ::seto::software_gpu::driver::system_gpus()

// Functions of the stand-in that the real driver does not have.
template <class Function>
[[nodiscard]] Function* control(const char* name) {
  using Find = cuda::DriverCode(const char*, void**, int, std::uint64_t, cuda::ProcAddressResult*);
  void* const library = dlopen(stand_in_file().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  auto* const find = library == nullptr ? nullptr : reinterpret_cast<Find*>(dlsym(library, "cuGetProcAddress_v2"));
  void* address = nullptr;
  if (find == nullptr || find(name, &address, cuda::kOldestDriver, 0, nullptr) != cuda::DriverCode::success) std::abort();
  return reinterpret_cast<Function*>(address);
}

class StandInTest : public ::testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;

  ~StandInTest() override {
    driver_.reset();
    if (!on_system_driver()) control<void()>("softwareGpuStop")();
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }

  // Starts the stand-in with variables for its settings, and initialises CUDA; GPU 0 gets the current context.
  void start(const Variables& variables = {}) {
    open(variables);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(ok(driver().init(0)));
    ASSERT_TRUE(ok(driver().device_primary_ctx_retain(&context_, 0)));
    ASSERT_TRUE(ok(driver().ctx_set_current(context_)));
  }

  void open(const Variables& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    variables_.insert(variables.begin(), variables.end());  // the destructor removes them
    if (!on_system_driver()) control<void()>("softwareGpuStart")();
    auto opened = cuda::Driver::open(on_system_driver() ? cuda::kDriverLibrary : stand_in_file());
    ASSERT_TRUE(ok(opened.ok() ? Status() : opened.status()));
    driver_ = std::move(opened).value();
  }

  [[nodiscard]] const cuda::Driver& driver() const { return *driver_; }
  [[nodiscard]] cuda::Context context() const { return context_; }

  static void inject(const std::string& errors) { control<void(const char*)>("softwareGpuInject")(errors.c_str()); }

  [[nodiscard]] cuda::Stream make_stream(unsigned flags = cuda::kStreamNonBlocking) const {
    cuda::Stream stream = nullptr;
    EXPECT_TRUE(ok(driver().stream_create_with_priority(&stream, flags, 0)));
    return stream;
  }
  [[nodiscard]] cuda::Event make_event() const {
    cuda::Event event = nullptr;
    EXPECT_TRUE(ok(driver().event_create(&event, cuda::kEventDisableTiming)));
    return event;
  }
  // Addresses of their own for so much of the memory of a handle, with access for a GPU.
  [[nodiscard]] cuda::DevicePointer map(cuda::MemoryHandle handle, std::size_t bytes, int gpu) const {
    cuda::DevicePointer pointer = 0;
    EXPECT_TRUE(ok(driver().mem_address_reserve(&pointer, bytes, 0, 0, 0)));
    EXPECT_TRUE(ok(driver().mem_map(pointer, bytes, 0, handle, 0)));
    const cuda::MemoryAccess access{.location = {.id = gpu}};
    EXPECT_TRUE(ok(driver().mem_set_access(pointer, bytes, &access, 1)));
    return pointer;
  }
  [[nodiscard]] cuda::DevicePointer allocate(std::size_t bytes) const {
    cuda::DevicePointer pointer = 0;
    EXPECT_TRUE(ok(driver().mem_alloc(&pointer, bytes)));
    return pointer;
  }
  // Pinned memory of the host, filled with zeros.
  [[nodiscard]] unsigned* pinned_words(std::size_t count) const {
    void* pointer = nullptr;
    EXPECT_TRUE(ok(driver().mem_host_alloc(&pointer, count * sizeof(unsigned), cuda::kHostAllocPortable)));
    std::fill_n(static_cast<unsigned*>(pointer), count, 0U);
    return static_cast<unsigned*>(pointer);
  }
  [[nodiscard]] std::vector<unsigned> words_at(cuda::DevicePointer pointer, std::size_t count, cuda::Stream stream) const {
    std::vector<unsigned> words(count);
    EXPECT_TRUE(ok(driver().memcpy_dtoh_async(words.data(), pointer, count * sizeof(unsigned), stream)));
    return words;
  }

  // A kernel of test_kernels.h.
  [[nodiscard]] cuda::Kernel kernel(const char* name) const {
    cuda::Module module = nullptr;
    EXPECT_TRUE(ok(driver().module_load_data(&module, kTestKernels)));
    cuda::Kernel found = nullptr;
    EXPECT_TRUE(ok(driver().module_get_function(&found, module, name)));
    return found;
  }

  // Launches with one-dimensional grid and block.
  template <class... Arguments>
  [[nodiscard]] Status launch(cuda::Kernel kernel, unsigned blocks, unsigned threads, cuda::Stream stream,
                              Arguments... arguments) const {
    void* values[] = {&arguments...};
    return driver().launch_kernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, values, nullptr);
  }

  // A kernel that waits for a flag, whose end sets another word: it shows that other work goes on meanwhile.
  struct WaitingKernel {
    unsigned* flag = nullptr;
    unsigned* ended = nullptr;

    void let_end() const { __atomic_store_n(flag, 1U, __ATOMIC_RELEASE); }
    [[nodiscard]] unsigned has_ended() const { return __atomic_load_n(ended, __ATOMIC_ACQUIRE); }
  };
  [[nodiscard]] WaitingKernel launch_waiting_kernel(cuda::Stream stream) const {
    const cuda::Kernel waiting = kernel("wait_for_flag");
    unsigned* const words = pinned_words(2);
    const WaitingKernel made{words, words + 1};
    EXPECT_TRUE(ok(launch(waiting, 1, 32, stream, made.flag, made.ended)));
    return made;
  }

 private:
  Variables variables_;
  std::unique_ptr<const cuda::Driver> driver_;
  cuda::Context context_ = nullptr;
};

}  // namespace seto::software_gpu::driver

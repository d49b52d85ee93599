#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "include/seto/seto.h"
#include "src/core/device_memory/launch_watcher.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/needs_kernels.h"

namespace seto::testing {

using software_gpu::driver::ok;

// A rank on a GPU of the stand-in, or of the machine. Its thread has the context of the GPU.
class DeviceRank final {
 public:
  DeviceRank(const cuda::Driver& its_driver, int its_rank, int its_gpu) : driver(its_driver), rank(its_rank), gpu(its_gpu) {
    EXPECT_TRUE(ok(driver.device_primary_ctx_retain(&context, gpu)));
    EXPECT_TRUE(ok(driver.ctx_set_current(context)));
    EXPECT_TRUE(ok(driver.stream_create_with_priority(&cuda_stream, cuda::kStreamNonBlocking, 0)));
  }
  ~DeviceRank() {
    EXPECT_TRUE(ok(driver.ctx_set_current(context)));
    for (const cuda::DevicePointer pointer : pointers_) EXPECT_TRUE(ok(driver.mem_free(pointer)));
    EXPECT_TRUE(ok(driver.stream_destroy(cuda_stream)));
  }
  DeviceRank(const DeviceRank&) = delete;
  DeviceRank& operator=(const DeviceRank&) = delete;

  [[nodiscard]] setoStream_t stream() const { return reinterpret_cast<setoStream_t>(cuda_stream); }
  void* allocate(std::size_t bytes) {
    cuda::DevicePointer pointer = 0;
    EXPECT_TRUE(ok(driver.mem_alloc(&pointer, std::max<std::size_t>(bytes, 1))));
    pointers_.push_back(pointer);
    return reinterpret_cast<void*>(pointer);
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    auto* const memory = static_cast<T*>(allocate(values.size() * sizeof(T)));
    write(memory, values);
    return memory;
  }
  template <class T>
  void write(T* memory, const std::vector<T>& values) const {
    if (values.empty()) return;
    EXPECT_TRUE(ok(driver.memcpy_htod_async(reinterpret_cast<cuda::DevicePointer>(memory), values.data(),
                                            values.size() * sizeof(T), cuda_stream)));
    synchronize();
  }
  // After the work of the stream.
  template <class T>
  std::vector<T> read(const T* memory, std::size_t count) const {
    std::vector<T> values(count);
    if (count == 0) return values;
    EXPECT_TRUE(ok(
        driver.memcpy_dtoh_async(values.data(), reinterpret_cast<cuda::DevicePointer>(memory), count * sizeof(T), cuda_stream)));
    synchronize();
    return values;
  }
  void synchronize() const { EXPECT_TRUE(ok(driver.stream_synchronize(cuda_stream))); }

  const cuda::Driver& driver;
  const int rank;
  const int gpu;
  cuda::Context context = nullptr;
  cuda::Stream cuda_stream = nullptr;
  setoComm_t comm = nullptr;

 private:
  std::vector<cuda::DevicePointer> pointers_;
};

// A limit for what must happen on a busy machine too: it only ends a test that fails. A kernel of the stand-in may take seconds
// under a race detector.
inline constexpr unsigned kPatienceMs = 60'000;
// Loading the kernels is the first part of an init: on the stand-in, with a race detector and busy cores, it takes minutes.
inline constexpr unsigned kLoadingMs = 300'000;

// A shorter timeout is for ranks of which no call has to succeed; else give it to the call that must fail, by its deadlineMs.
inline setoConfig_t device_config(unsigned timeout_ms = kPatienceMs) {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.memory = setoMemoryDevice;
  config.initTimeoutMs = kLoadingMs;
  config.operationTimeoutMs = timeout_ms;
  return config;
}

class DeviceMemory : public software_gpu::driver::StandInTest {
 protected:
  using Body = std::function<void(DeviceRank&)>;

  void SetUp() override {
    if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  }
  void TearDown() override { EXPECT_TRUE(all_is_freed()); }

  void start_gpus(int gpus, Variables variables = {}) {
    gpus_ = gpus;
    if (!software_gpu::driver::on_system_driver()) variables["SOFTWARE_GPU_COUNT"] = std::to_string(gpus);
    variables["SOFTWARE_GPU_WAIT_SECONDS"] = "240";  // a deadline of the library or of ctest ends a test that hangs
    start(variables);
    int count = gpus;
    if (HasFatalFailure()) return;
    EXPECT_TRUE(ok(driver().device_get_count(&count)));
    gpus_ = std::min(gpus, count);  // of a machine; more ranks share a GPU
  }
  [[nodiscard]] int gpu_of(int rank) const { return rank % gpus_; }

  // Runs the body on a thread for each rank, without a communicator.
  void on_threads(int ranks, const Body& body) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        DeviceRank mine(driver(), rank, gpu_of(rank));
        body(mine);
      });
    for (std::thread& thread : threads) thread.join();
  }

  // The same with a communicator, which is destroyed afterwards unless the body has ended it.
  void on_ranks(int ranks, const Body& body, setoConfig_t config = device_config()) const {
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    on_threads(ranks, [&](DeviceRank& mine) {
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, ranks, id, mine.rank, &config)));
      body(mine);
      if (mine.comm != nullptr) {
        EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      }
    });
  }

 protected:
  // The rest of ended communicators goes when all ranks are gone, before the stand-in ends.
  static ::testing::AssertionResult all_is_freed() {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (LaunchWatcher::of_process().retired() > 0)
      if (until.passed()) return ::testing::AssertionFailure() << LaunchWatcher::of_process().retired() << " are left";
    return ::testing::AssertionSuccess();
  }

 private:
  int gpus_ = 1;
};

}  // namespace seto::testing

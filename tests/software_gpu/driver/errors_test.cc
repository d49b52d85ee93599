// Errors of the driver as a user of the library reads them.
#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>

#include "src/device/cuda/driver_list.h"
#include "src/device/cuda/gpu_facts.h"
#include "tests/software_gpu/driver/driver_test.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DriverCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Errors : public StandInTest {
 protected:
  [[nodiscard]] std::string trouble(const Variables& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    control<void()>("softwareGpuStart")();
    const cuda::GpuReport report = cuda::report_gpus(stand_in_file());
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    EXPECT_TRUE(report.gpus.empty());
    return cuda::line_of(report);
  }
};

TEST_F(Errors, EachCallCanFailAndIsNamed) {
  start();
  int calls = 0;
  const auto expect_failure = [&]<class... Arguments>(const cuda::Call<Arguments...>& call) {
    ++calls;
    inject(std::string(call.name()) + ":999:1");
    EXPECT_THAT(std::string(call(Arguments{}...).text()),
                StartsWith(std::string(call.name()) + " failed with CUDA_ERROR_UNKNOWN (999, the error has no name: "
                                                      "SOFTWARE_GPU_ERRORS makes call 1 fail): "));
  };
  // The list is that of a table which can be changed; the driver's is constant.
  cuda::for_each_call(const_cast<cuda::Driver&>(driver()), expect_failure);
  cuda::for_each_optional_call(const_cast<cuda::Driver&>(driver()), expect_failure);
  EXPECT_GT(calls, 85);
}

TEST_F(Errors, TheCallOfAStatedNumberFails) {
  start();
  const auto alloc = [&] {
    cuda::DevicePointer pointer = 0;
    return driver().mem_alloc.code(&pointer, 64);
  };
  inject("cuMemAlloc:2:2,cuMemAlloc:801:4-5,cuCtxSynchronize:719:2-");
  for (const DriverCode code : {DriverCode::success, DriverCode::out_of_memory, DriverCode::success, DriverCode::not_supported,
                                DriverCode::not_supported, DriverCode::success})
    EXPECT_EQ(alloc(), code);
  EXPECT_TRUE(ok(driver().ctx_synchronize()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(driver().ctx_synchronize.code(), DriverCode::launch_failed);
}

TEST_F(Errors, InjectedErrorsSayWhatToDo) {
  start();
  struct Case {
    const char* errors;
    std::function<Status()> call;
    const char* advice;
  };
  cuda::Context context = nullptr;
  cuda::DevicePointer pointer = 0;
  cuda::MemoryHandle handle = 0;
  cuda::Module module = nullptr;
  const cuda::IpcMemoryHandle ipc;
  for (const Case& one : std::initializer_list<Case>{
           {"cuInit:100", [&] { return driver().init(0); }, "CUDA_VISIBLE_DEVICES"},
           {"cuInit:802", [&] { return driver().init(0); }, "nvidia-fabricmanager"},
           {"cuInit:803", [&] { return driver().init(0); }, "reboot"},
           {"cuDevicePrimaryCtxRetain:46", [&] { return driver().device_primary_ctx_retain(&context, 0); }, "compute mode"},
           {"cuDevicePrimaryCtxRetain:2", [&] { return driver().device_primary_ctx_retain(&context, 0); },
            "too little free memory"},
           {"cuMemAlloc:2", [&] { return driver().mem_alloc(&pointer, 8); }, "too little free memory"},
           {"cuIpcOpenMemHandle:201", [&] { return driver().ipc_open_mem_handle(&pointer, ipc, 1); }, "--pid=host"},
           {"cuIpcOpenMemHandle:304", [&] { return driver().ipc_open_mem_handle(&pointer, ipc, 1); }, "--ipc=host"},
           {"cuMemImportFromShareableHandle:304",
            [&] { return driver().mem_import(&handle, nullptr, cuda::HandleType::posix_file_descriptor); }, "--ipc=host"},
           {"cuCtxEnablePeerAccess:217", [&] { return driver().ctx_enable_peer_access(context, 0); }, "nvidia-smi topo -p2p r"},
           {"cuModuleLoadData:209", [&] { return driver().module_load_data(&module, kTestKernels); }, "compute capability 8.0"},
           {"cuMemAlloc:201", [&] { return driver().mem_alloc(&pointer, 8); }, "no current CUDA context"}}) {
    inject(one.errors);
    EXPECT_THAT(std::string(one.call().text()), HasSubstr(one.advice)) << one.errors;
  }
}

TEST_F(Errors, GpusThatCannotBeUsedAreReportedInOneLine) {
  EXPECT_THAT(trouble({{"SOFTWARE_GPU_VERSION", "12080"}}),
              AllOf(StartsWith("the CUDA driver is of CUDA 12.8, but the kernels of this library need CUDA 13.0"),
                    HasSubstr("release 580")));
  EXPECT_THAT(trouble({{"SOFTWARE_GPU_COUNT", "0"}}),
              AllOf(StartsWith("driver of CUDA 13.0: cuInit failed with CUDA_ERROR_NO_DEVICE"), HasSubstr("nvidia-smi")));
  EXPECT_THAT(trouble({{"SOFTWARE_GPU_ERRORS", "cuDeviceGetName:999"}}), HasSubstr("cuDeviceGetName failed"));
}

TEST_F(Errors, GpusAreDescribed) {
  open({{"SOFTWARE_GPU_COUNT", "2"},
        {"SOFTWARE_GPU_CAPABILITY", "100"},
        {"SOFTWARE_GPU_MULTI_INSTANCE", "1"},
        {"SOFTWARE_GPU_COMPUTE_MODE", "exclusive"}});
  const cuda::GpuReport report = cuda::report_gpus(stand_in_file());
  ASSERT_EQ(report.gpus.size(), 2U) << report.trouble;
  EXPECT_EQ(report.gpus[0].name, "Software GPU MIG 1g.10gb");
  EXPECT_EQ(report.gpus[1].uuid, "GPU-736f6674-7761-7265-2067-707500000001");
  EXPECT_EQ(cuda::facts_text(report.gpus[1]),
            "compute capability 10.0, 256 MiB, PCI 0000:1b:00.0, NVLink multicast, compute mode exclusive: one process");
}

TEST_F(Errors, AProhibitedGpuHasNoContext) {
  open({{"SOFTWARE_GPU_COMPUTE_MODE", "prohibited"}});
  cuda::Context context = nullptr;
  EXPECT_EQ(driver().device_primary_ctx_retain.code(&context, 0), DriverCode::not_initialized);
  ASSERT_TRUE(ok(driver().init(0)));
  EXPECT_THAT(std::string(driver().device_primary_ctx_retain(&context, 0).text()),
              AllOf(HasSubstr("CUDA_ERROR_DEVICE_UNAVAILABLE"), HasSubstr("nvidia-smi -c DEFAULT")));
}

TEST_F(Errors, AThreadWithoutAContextIsToldSo) {
  start();
  ASSERT_TRUE(ok(driver().ctx_set_current(nullptr)));
  cuda::DevicePointer pointer = 0;
  const Status status = driver().mem_alloc(&pointer, 64);
  EXPECT_EQ(status.code(), seto::Code::invalid_usage);
  EXPECT_THAT(std::string(status.text()), HasSubstr("the thread has no current CUDA context"));
}

TEST_F(Errors, AFaultOfAKernelIsExplainedByTheNextCalls) {
  start();
  const cuda::Stream stream = make_stream();
  const cuda::DevicePointer words = allocate(64);
  ASSERT_TRUE(ok(launch(kernel("add"), 1, 32, stream, words, 32U, 1U)));
  const auto explained = AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("kernel add"), HasSubstr("ld.global.u32 %r6"),
                               HasSubstr("memory of cuMemAlloc (64 bytes) ends 0 bytes before"), HasSubstr("context is lost"));
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()), explained);
  cuda::DevicePointer more = 0;
  EXPECT_THAT(std::string(driver().mem_alloc(&more, 64).text()), explained) << "the context stays lost";
  EXPECT_EQ(driver().stream_query.code(stream), DriverCode::illegal_address);
}

TEST_F(Errors, AnUnknownInstructionIsAnErrorOfTheLaunch) {
  start();
  cuda::Module module = nullptr;
  ASSERT_TRUE(ok(driver().module_load_data(
      &module, ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nfrob.b32 1;\nret;\n}\n")));
  cuda::Kernel found = nullptr;
  ASSERT_TRUE(ok(driver().module_get_function(&found, module, "k")));
  const cuda::Stream stream = make_stream();
  ASSERT_TRUE(ok(launch(found, 1, 32, stream)));
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()), AllOf(HasSubstr("ptx line 6"), HasSubstr("frob.b32")));
}

TEST_F(Errors, RacesOfGlobalMemoryAreFoundWhereATestWantsIt) {
  for (const bool wanted : {false, true}) {
    start({{"SOFTWARE_GPU_GLOBAL_RACES", wanted ? "1" : "0"}});
    const cuda::Stream first = make_stream(), second = make_stream();
    const cuda::Kernel add = kernel("add");
    const WaitingKernel waiting = launch_waiting_kernel(first);
    // Both kernels run at once and write the same word; the host, which the check does not see, orders them.
    ASSERT_TRUE(ok(launch(add, 1, 1, second, waiting.ended, 1U, 5U)));
    ASSERT_TRUE(ok(driver().stream_synchronize(second)));
    waiting.let_end();
    const Status status = driver().stream_synchronize(first);
    EXPECT_EQ(status.ok(), !wanted);
    if (wanted) {
      EXPECT_THAT(std::string(status.text()), AllOf(HasSubstr("CUDA_ERROR_LAUNCH_FAILED"), HasSubstr("race")));
    }
  }
}

TEST_F(Errors, AHangEndsWithAReport) {
  start({{"SOFTWARE_GPU_STEP_BUDGET", "100000"}});
  const cuda::Stream stream = make_stream();
  (void)launch_waiting_kernel(stream);
  EXPECT_THAT(std::string(driver().stream_synchronize(stream).text()),
              AllOf(HasSubstr("CUDA_ERROR_LAUNCH_TIMEOUT"), HasSubstr("kernel wait_for_flag: 0 of 1 blocks have ended")));
}

TEST_F(Errors, LaunchesThatCannotRunAreRefused) {
  start({{"SOFTWARE_GPU_MULTIPROCESSORS", "2"}});
  const cuda::Stream stream = make_stream();
  const cuda::Kernel increment = kernel("increment_counter");
  int blocks = 0;
  ASSERT_TRUE(ok(driver().occupancy_max_active_blocks(&blocks, increment, 1024, 0)));
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(driver().launch_cooperative_kernel.code(increment, 5, 1, 1, 1024, 1, 1, 0, stream, nullptr),
            DriverCode::cooperative_launch_too_large);
  EXPECT_TRUE(ok(driver().launch_cooperative_kernel(increment, 4, 1, 1, 1024, 1, 1, 0, stream, nullptr)));
  EXPECT_EQ(launch(increment, 1, 1025, stream).code(), seto::Code::invalid_argument);
  EXPECT_EQ(driver().launch_kernel.code(increment, 1, 1, 1, 32, 1, 1, 100 << 10, stream, nullptr, nullptr),
            DriverCode::invalid_value);
  ASSERT_TRUE(ok(driver().func_set_attribute(increment, cuda::KernelAttribute::max_dynamic_shared_bytes, 100 << 10)));
  EXPECT_TRUE(ok(driver().launch_kernel(increment, 1, 1, 1, 32, 1, 1, 100 << 10, stream, nullptr, nullptr)));
  EXPECT_TRUE(ok(driver().stream_synchronize(stream)));
}

TEST_F(Errors, ModulesThatCannotBeLoadedSayWhy) {
  start();
  cuda::Module module = nullptr;
  EXPECT_THAT(std::string(driver().module_load_data(&module, "no kernels").text()),
              AllOf(HasSubstr("CUDA_ERROR_INVALID_IMAGE"), HasSubstr("neither PTX nor a fatbin")));
  EXPECT_THAT(std::string(driver()
                              .module_load_data(&module,
                                                ".version 9.0\n.target sm_80\n.address_size 64\n"
                                                ".visible .entry k()\n{\n.reg .b33 %r<2>;\nret;\n}\n")
                              .text()),
              AllOf(HasSubstr("CUDA_ERROR_INVALID_PTX"), HasSubstr("ptx line 6"), HasSubstr("'.b33' is not a type")));
  ASSERT_TRUE(ok(driver().module_load_data(&module, kTestKernels)));
  cuda::Kernel found = nullptr;
  EXPECT_EQ(driver().module_get_function.code(&found, module, "nothing"), DriverCode::not_found);
  cuda::DevicePointer counter = 0;
  std::size_t size = 0;
  ASSERT_TRUE(ok(driver().module_get_global(&counter, &size, module, "counter")));
  EXPECT_EQ(size, 4U);
}

}  // namespace
}  // namespace seto::software_gpu::driver

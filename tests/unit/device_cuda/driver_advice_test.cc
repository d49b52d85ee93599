#include <gmock/gmock.h>

#include <set>
#include <string>

#include "src/device/cuda/driver_call.h"

namespace seto::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

DriverCode name_of_error(DriverCode code, const char** text) {
  if (code != DriverCode::out_of_memory) return DriverCode::invalid_value;
  *text = "CUDA_ERROR_OUT_OF_MEMORY";
  return DriverCode::success;
}

DriverCode text_of_error(DriverCode code, const char** text) {
  if (code != DriverCode::out_of_memory) return DriverCode::invalid_value;
  *text = "out of memory";
  return DriverCode::success;
}

std::string advice(const char* call, DriverCode code) { return std::string(driver_failure(call, code, nullptr).text()); }

TEST(DriverAdvice, NamesTheCallTheErrorAndWhatToDo) {
  const DriverMessages messages{name_of_error, text_of_error};
  const Status status = driver_failure("cuMemAlloc", DriverCode::out_of_memory, &messages);
  EXPECT_EQ(status.code(), seto::Code::unavailable);
  EXPECT_EQ(status.text(),
            "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2, out of memory): the GPU has too little free memory: nvidia-smi "
            "lists the processes that hold it; leave some to Seto");
}

TEST(DriverAdvice, AnErrorThatTheDriverDoesNotNameHasItsNumber) {
  const DriverMessages messages{name_of_error, text_of_error};
  EXPECT_THAT(std::string(driver_failure("cuInit", static_cast<DriverCode>(4711), &messages).text()),
              StartsWith("cuInit failed with an error without a name (4711): "));
}

TEST(DriverAdvice, TellsTheCausesThatUsersMeet) {
  EXPECT_THAT(advice("cuInit", DriverCode::no_device), HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(advice("cuInit", DriverCode::stub_library), HasSubstr("lib64/stubs"));
  EXPECT_THAT(advice("cuInit", DriverCode::system_not_ready), HasSubstr("nvidia-fabricmanager"));
  EXPECT_THAT(advice("cuInit", DriverCode::system_driver_mismatch), HasSubstr("reboot"));
  EXPECT_THAT(advice("cuDevicePrimaryCtxRetain", DriverCode::device_unavailable), HasSubstr("nvidia-smi -c DEFAULT"));
  EXPECT_THAT(advice("cuMemHostAlloc", DriverCode::out_of_memory), HasSubstr("ulimit -l"));
  EXPECT_THAT(advice("cuCtxEnablePeerAccess", DriverCode::peer_access_unsupported), HasSubstr("through host memory"));
  EXPECT_THAT(advice("cuLaunchKernel", DriverCode::invalid_context), HasSubstr("cudaSetDevice"));
  EXPECT_THAT(advice("cuStreamSynchronize", DriverCode::illegal_address), HasSubstr("compute-sanitizer"));
  EXPECT_THAT(advice("cuMemAlloc", DriverCode::stream_capture_unsupported), HasSubstr("before the capture begins"));
  EXPECT_THAT(advice("cuModuleLoadData", DriverCode::no_binary_for_gpu), HasSubstr("compute capability 8.0"));
  EXPECT_THAT(advice("cuMemAlloc", DriverCode::not_initialized), HasSubstr("forked"));
}

TEST(DriverAdvice, SharingBetweenProcessesHasItsOwn) {
  for (const DriverCode code : {DriverCode::invalid_value, DriverCode::operating_system, DriverCode::not_supported}) {
    EXPECT_THAT(advice("cuIpcOpenMemHandle", code), HasSubstr("--ipc=host and --pid=host"));
    EXPECT_THAT(advice("cuMemImportFromShareableHandle", code), HasSubstr("by file descriptor"));
    EXPECT_THAT(advice("cuMemAlloc", code), Not(HasSubstr("--ipc=host")));
  }
  for (const DriverCode code : {DriverCode::invalid_context, DriverCode::invalid_handle})
    EXPECT_THAT(advice("cuIpcOpenMemHandle", code), HasSubstr("--ipc=host and --pid=host"));
  EXPECT_THAT(advice("cuIpcGetMemHandle", DriverCode::invalid_value), HasSubstr("only memory of cudaMalloc"));
}

TEST(DriverAdvice, TellsWhoseMistakeItIs) {
  EXPECT_EQ(driver_failure("cuMemcpyAsync", DriverCode::invalid_value, nullptr).code(), seto::Code::invalid_argument);
  EXPECT_EQ(driver_failure("cuMemAlloc", DriverCode::invalid_context, nullptr).code(), seto::Code::invalid_usage);
  EXPECT_EQ(driver_failure("cuStreamEndCapture", DriverCode::stream_capture_unjoined, nullptr).code(), seto::Code::invalid_usage);
  EXPECT_EQ(driver_failure("cuInit", DriverCode::no_device, nullptr).code(), seto::Code::unavailable);
}

TEST(DriverCall, GivesTheCodeWhereAnErrorIsAnAnswer) {
  Call<int> call{"cuStreamQuery", 2000};
  constexpr auto function = [](int argument) { return argument == 0 ? DriverCode::success : DriverCode::not_ready; };
  call.set(reinterpret_cast<void*>(+function), nullptr);
  EXPECT_TRUE(call(0).ok());
  EXPECT_THAT(std::string(call(1).text()), StartsWith("cuStreamQuery failed with an error without a name (600): "));
  EXPECT_EQ(call.code(1), DriverCode::not_ready);
}

TEST(DriverAdvice, FewErrorsAreLeftToTheDocumentation) {
  const std::string other = advice("cuX", static_cast<DriverCode>(4711));
  const std::string general = other.substr(other.find("): ") + 3);
  std::set<DriverCode> explained;
  for (unsigned code = 1; code < 1000; ++code)
    if (advice("cuX", static_cast<DriverCode>(code)).find(general) == std::string::npos)
      explained.insert(static_cast<DriverCode>(code));
  EXPECT_GE(explained.size(), 50U);
  EXPECT_EQ(explained.count(DriverCode::unknown), 0U);
  for (const DriverCode code : {DriverCode::not_found, DriverCode::not_ready}) EXPECT_EQ(explained.count(code), 0U);
}

}  // namespace
}  // namespace seto::cuda

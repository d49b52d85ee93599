#include "tests/software_gpu/driver/driver_error.h"

#include <array>
#include <map>
#include <mutex>
#include <set>

namespace seto::software_gpu::driver {
namespace {

struct Row {
  DriverCode code;
  const char* name;
  const char* text;
};

using enum DriverCode;
constexpr std::array kRows{
    Row{success, "CUDA_SUCCESS", "no error"},
    Row{invalid_value, "CUDA_ERROR_INVALID_VALUE", "an argument is not valid"},
    Row{out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "no memory is left"},
    Row{not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called in this process"},
    Row{deinitialized, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
    Row{stub_library, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
    Row{device_unavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device accepts no context"},
    Row{no_device, "CUDA_ERROR_NO_DEVICE", "there is no device"},
    Row{invalid_device, "CUDA_ERROR_INVALID_DEVICE", "there is no device of this number"},
    Row{invalid_image, "CUDA_ERROR_INVALID_IMAGE", "the image of the kernels is not valid"},
    Row{invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "there is no current context"},
    Row{map_failed, "CUDA_ERROR_MAP_FAILED", "memory cannot be mapped"},
    Row{no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no kernels for this device"},
    Row{ecc_uncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE", "memory is faulty"},
    Row{context_already_in_use, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the context is in use"},
    Row{peer_access_unsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "the devices cannot reach each other"},
    Row{invalid_ptx, "CUDA_ERROR_INVALID_PTX", "the PTX cannot be compiled"},
    Row{nvlink_uncorrectable, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "an NVLink is faulty"},
    Row{jit_compiler_not_found, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the compiler of PTX is missing"},
    Row{unsupported_ptx_version, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is newer than the driver"},
    Row{operating_system, "CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"},
    Row{invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "the handle is not valid"},
    Row{illegal_state, "CUDA_ERROR_ILLEGAL_STATE", "the object is in another state"},
    Row{not_found, "CUDA_ERROR_NOT_FOUND", "there is nothing of this name"},
    Row{not_ready, "CUDA_ERROR_NOT_READY", "the work has not ended"},
    Row{illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed memory that it may not access"},
    Row{launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch needs too much"},
    Row{launch_timeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel did not end in time"},
    Row{peer_access_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled"},
    Row{peer_access_not_enabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    Row{context_is_destroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed"},
    Row{assertion, "CUDA_ERROR_ASSERT", "an assertion of a kernel failed"},
    Row{too_many_peers, "CUDA_ERROR_TOO_MANY_PEERS", "the device has too many peers"},
    Row{host_memory_already_registered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the memory is registered"},
    Row{host_memory_not_registered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the memory is not registered"},
    Row{hardware_stack_error, "CUDA_ERROR_HARDWARE_STACK_ERROR", "a call stack overflowed"},
    Row{illegal_instruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an instruction is not valid"},
    Row{misaligned_address, "CUDA_ERROR_MISALIGNED_ADDRESS", "an address is not aligned"},
    Row{invalid_address_space, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "an address is in another space"},
    Row{invalid_pc, "CUDA_ERROR_INVALID_PC", "the program counter is not valid"},
    Row{launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    Row{cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "the blocks do not fit at once"},
    Row{not_permitted, "CUDA_ERROR_NOT_PERMITTED", "the call is not permitted here"},
    Row{not_supported, "CUDA_ERROR_NOT_SUPPORTED", "the call is not supported"},
    Row{system_not_ready, "CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready"},
    Row{system_driver_mismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "library and kernel module differ"},
    Row{compat_not_supported_on_device, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the device has no compatibility package"},
    Row{mps_connection_failed, "CUDA_ERROR_MPS_CONNECTION_FAILED", "MPS does not answer"},
    Row{mps_max_clients_reached, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "MPS has too many clients"},
    Row{mps_client_terminated, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "MPS ended this client"},
    Row{stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "the call is not permitted during a capture"},
    Row{stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error invalidated the capture"},
    Row{stream_capture_merge, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "the call would join two captures"},
    Row{stream_capture_unmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin in this stream"},
    Row{stream_capture_unjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a stream of the capture was not joined"},
    Row{stream_capture_isolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the capture would depend on work outside of it"},
    Row{stream_capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the legacy stream would join the capture"},
    Row{captured_event, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
    Row{stream_capture_wrong_thread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the capture"},
    Row{timeout, "CUDA_ERROR_TIMEOUT", "the wait was too long"},
    Row{unknown, "CUDA_ERROR_UNKNOWN", "the error has no name"},
};

const Row* row_of(DriverCode code) {
  for (const Row& row : kRows)
    if (row.code == code) return &row;
  return nullptr;
}

// Texts stay where they are until the process ends, because callers keep pointers to them.
struct Explanations {
  std::mutex mutex;
  std::set<std::string> texts;
  std::map<DriverCode, const char*> last;
};

Explanations& explanations() {
  static Explanations* const all = new Explanations();
  return *all;
}

}  // namespace

const char* error_name(DriverCode code) {
  const Row* const row = row_of(code);
  return row == nullptr ? nullptr : row->name;
}

const char* error_text(DriverCode code) {
  Explanations& all = explanations();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.last.find(code); found != all.last.end()) return found->second;
  const Row* const row = row_of(code);
  return row == nullptr ? nullptr : row->text;
}

void explain_error(DriverCode code, const std::string& explanation) {
  Explanations& all = explanations();
  const std::lock_guard lock(all.mutex);
  all.last.erase(code);
  const Row* const row = row_of(code);
  if (explanation.empty() || row == nullptr) return;
  all.last[code] = all.texts.insert(std::string(row->text) + ": " + explanation).first->c_str();
}

}  // namespace seto::software_gpu::driver

#include <array>
#include <string_view>

#include "src/device/cuda/driver_call.h"

namespace seto::cuda {
namespace {

struct Advice {
  DriverCode code;
  Code kind;
  const char* text;
  const char* calls = "";  // only for calls whose names begin so; such a row stands before the one for all calls
};

constexpr const char* kAfterFault =
    "a kernel of this process failed, so its CUDA context is lost: end the process; compute-sanitizer finds the kernel";
constexpr const char* kDuringCapture =
    "a stream is being captured into a graph: make this call before the capture begins, or capture with "
    "cudaStreamCaptureModeThreadLocal";
constexpr const char* kBrokenCapture = "the capture of a stream into a graph failed: capture again, and join all forked streams";
constexpr const char* kNoKernel =
    "the library has no kernel for this GPU: it needs compute capability 8.0 or later, and a driver of CUDA 13.0 or later";
constexpr const char* kIpcRefused =
    "the system does not let processes share GPU memory by IPC: start containers of one host with --ipc=host and --pid=host, as "
    "one user, and without memory of pools or expandable segments (PYTORCH_CUDA_ALLOC_CONF)";
constexpr const char* kHandleRefused =
    "the system does not let processes share GPU memory by file descriptor: start both processes in one container or with "
    "--ipc=host, and on a kernel whose NVIDIA driver is the same";
constexpr const char* kBadArgument =
    "an argument is wrong: a pointer that was freed, belongs to another GPU or is not of the GPU at all, or a size of 0";

using enum DriverCode;
constexpr std::array kAdvice{
    Advice{invalid_value, Code::unavailable, kIpcRefused, "cuIpcOpen"},
    Advice{invalid_value, Code::invalid_argument,
           "this memory cannot be shared by IPC: only memory of cudaMalloc can, not that of pools or of expandable segments",
           "cuIpcGet"},
    Advice{invalid_value, Code::unavailable, kHandleRefused, "cuMemImport"},
    Advice{invalid_value, Code::invalid_argument, kBadArgument},
    Advice{out_of_memory, Code::unavailable,
           "pinned host memory is exhausted: raise the limit of locked memory (ulimit -l) or that of the container", "cuMemHost"},
    Advice{out_of_memory, Code::unavailable,
           "the GPU has too little free memory: nvidia-smi lists the processes that hold it; leave some to Seto"},
    Advice{not_initialized, Code::invalid_usage,
           "CUDA is not initialised in this process: a process that was forked after CUDA started cannot use it; start "
           "processes with spawn"},
    Advice{deinitialized, Code::invalid_usage,
           "the process is ending and the driver is gone: destroy communicators before main returns"},
    Advice{stub_library, Code::unavailable,
           "the program loaded the toolkit's stub in place of the driver: remove its folder lib64/stubs from LD_LIBRARY_PATH"},
    Advice{device_unavailable, Code::unavailable,
           "the GPU accepts no further process: its compute mode is exclusive and another process uses it, or prohibited "
           "(nvidia-smi -q -d COMPUTE shows it; nvidia-smi -c DEFAULT as root lets processes share)"},
    Advice{no_device, Code::unavailable, "no GPU is visible: see nvidia-smi, CUDA_VISIBLE_DEVICES, and --gpus of the container"},
    Advice{invalid_device, Code::invalid_argument,
           "there is no GPU of this number: CUDA_VISIBLE_DEVICES may hide it, and a slice of a MIG GPU counts as a GPU"},
    Advice{invalid_image, Code::unavailable, kNoKernel},
    Advice{invalid_context, Code::unavailable, kIpcRefused, "cuIpcOpen"},
    Advice{invalid_context, Code::invalid_usage,
           "the thread has no current CUDA context of this GPU: call cudaSetDevice in it first"},
    Advice{map_failed, Code::unavailable, kIpcRefused, "cuIpc"},
    Advice{no_binary_for_gpu, Code::unavailable, kNoKernel},
    Advice{ecc_uncorrectable, Code::unavailable, "the GPU's memory is faulty: take it out of service (nvidia-smi -q -d ECC)"},
    Advice{context_already_in_use, Code::unavailable,
           "another thread or process owns the GPU: its compute mode is exclusive (nvidia-smi -c DEFAULT as root lets processes "
           "share)"},
    Advice{peer_access_unsupported, Code::unavailable,
           "these GPUs cannot reach each other's memory (nvidia-smi topo -p2p r shows pairs; an IOMMU or a virtual machine "
           "prevents it): data goes through host memory"},
    Advice{invalid_ptx, Code::unavailable, kNoKernel},
    Advice{nvlink_uncorrectable, Code::unavailable, "an NVLink is faulty: nvidia-smi nvlink -e shows which"},
    Advice{jit_compiler_not_found, Code::unavailable,
           "the driver lacks libnvidia-ptxjitcompiler.so.1: install the driver's package completely, in the container too"},
    Advice{unsupported_ptx_version, Code::unavailable, kNoKernel},
    Advice{operating_system, Code::unavailable, kIpcRefused, "cuIpc"},
    Advice{operating_system, Code::unavailable, kHandleRefused, "cuMemImport"},
    Advice{operating_system, Code::unavailable, kHandleRefused, "cuMemExport"},
    Advice{operating_system, Code::unavailable,
           "the kernel refused a request of the driver: see dmesg for NVRM and Xid, and ulimit -n"},
    Advice{invalid_handle, Code::unavailable, kIpcRefused, "cuIpcOpen"},
    Advice{invalid_handle, Code::invalid_argument,
           "a stream, event or module was destroyed, or belongs to the context of another GPU"},
    Advice{illegal_address, Code::unavailable, kAfterFault},
    Advice{launch_out_of_resources, Code::internal, "a kernel needs more registers or shared memory than the GPU has"},
    Advice{launch_timeout, Code::unavailable,
           "a kernel ran longer than the display's watchdog allows: use a GPU without a display"},
    Advice{peer_access_already_enabled, Code::internal, "peer access was enabled before"},
    Advice{context_is_destroyed, Code::invalid_usage,
           "the CUDA context was destroyed (cudaDeviceReset?): destroy communicators first"},
    Advice{assertion, Code::unavailable, kAfterFault},
    Advice{too_many_peers, Code::unavailable, "the GPU can reach the memory of no further GPU: use fewer GPUs in a process"},
    Advice{host_memory_already_registered, Code::invalid_usage, "this host memory, or a part of it, is registered already"},
    Advice{host_memory_not_registered, Code::invalid_usage, "this host memory is not registered"},
    Advice{hardware_stack_error, Code::unavailable, kAfterFault},
    Advice{illegal_instruction, Code::unavailable, kAfterFault},
    Advice{misaligned_address, Code::unavailable, kAfterFault},
    Advice{invalid_address_space, Code::unavailable, kAfterFault},
    Advice{invalid_pc, Code::unavailable, kAfterFault},
    Advice{launch_failed, Code::unavailable, kAfterFault},
    Advice{cooperative_launch_too_large, Code::unavailable,
           "the blocks of this launch do not fit the GPU at once: let fewer ranks share it"},
    Advice{not_permitted, Code::unavailable, kDuringCapture, "cuStream"},
    Advice{not_permitted, Code::unavailable, "the driver does not permit it to this process: see the container's privileges"},
    Advice{not_supported, Code::unavailable, kIpcRefused, "cuIpc"},
    Advice{not_supported, Code::unavailable, kHandleRefused, "cuMemExport"},
    Advice{not_supported, Code::unavailable, kHandleRefused, "cuMemImport"},
    Advice{not_supported, Code::unavailable, "this GPU or system does not support it (nvidia-smi -q shows the GPU's mode)"},
    Advice{system_not_ready, Code::unavailable,
           "the system is not ready for CUDA: on machines with NVSwitch start nvidia-fabricmanager of the driver's version"},
    Advice{system_driver_mismatch, Code::unavailable,
           "the library libcuda and the loaded kernel module have different versions: reboot, or update both"},
    Advice{compat_not_supported_on_device, Code::unavailable,
           "the package cuda-compat does not support this GPU: update the NVIDIA driver itself"},
    Advice{mps_connection_failed, Code::unavailable, "MPS does not answer: see its daemon (nvidia-cuda-mps-control)"},
    Advice{mps_max_clients_reached, Code::unavailable, "MPS serves no further process: start fewer ranks on the GPU"},
    Advice{mps_client_terminated, Code::unavailable, "MPS ended this process because another one failed on the GPU"},
    Advice{stream_capture_unsupported, Code::invalid_usage, kDuringCapture},
    Advice{stream_capture_invalidated, Code::invalid_usage, kBrokenCapture},
    Advice{stream_capture_merge, Code::invalid_usage, kBrokenCapture},
    Advice{stream_capture_unmatched, Code::invalid_usage, kBrokenCapture},
    Advice{stream_capture_unjoined, Code::invalid_usage, kBrokenCapture},
    Advice{stream_capture_isolation, Code::invalid_usage,
           "the call depends on work outside of the graph that is being captured: wait for that work before the capture begins"},
    Advice{stream_capture_implicit, Code::invalid_usage,
           "the legacy default stream (NULL) cannot be used while a stream that waits for it is being captured: use another "
           "stream"},
    Advice{captured_event, Code::invalid_usage, kDuringCapture},
    Advice{stream_capture_wrong_thread, Code::invalid_usage, "the thread that began the capture must end it"},
};
constexpr Advice kOther{unknown, Code::unavailable,
                        "the driver's documentation explains the error; dmesg may have a line of NVRM or Xid"};

const Advice& advice_for(std::string_view call, DriverCode code) {
  for (const Advice& row : kAdvice)
    if (row.code == code && call.starts_with(row.calls)) return row;
  return kOther;
}

const char* message(DriverCode (*ask)(DriverCode, const char**), DriverCode code) {
  const char* text = nullptr;
  return ask != nullptr && ask(code, &text) == DriverCode::success ? text : nullptr;
}

}  // namespace

Status driver_failure(const char* call, DriverCode code, const DriverMessages* messages) {
  const Advice& advice = advice_for(call, code);
  const char* const name = messages == nullptr ? nullptr : message(messages->name, code);
  const char* const text = messages == nullptr ? nullptr : message(messages->text, code);
  return failure(advice.kind, "%s failed with %s (%u%s%s): %s", call, name == nullptr ? "an error without a name" : name,
                 static_cast<unsigned>(code), text == nullptr ? "" : ", ", text == nullptr ? "" : text, advice.text);
}

}  // namespace seto::cuda

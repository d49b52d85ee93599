#include "src/torch/device/native_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace seto::torch_backend {
namespace {

void* (*ask)(const c10::Stream& stream) = nullptr;

}  // namespace

void ask_for_native_handles_by(void* (*function)(const c10::Stream& stream)) { ask = function; }

setoStream_t native_handle(const c10::Stream& stream) {
#ifdef SETO_TORCH_HAS_NATIVE_STREAM
  return static_cast<setoStream_t>(c10::impl::VirtualGuardImpl(stream.device_type()).getStreamNativeHandle(stream));
#else
  TORCH_CHECK(ask != nullptr, "seto: this version of torch tells the CUDA stream only to Python");
  return static_cast<setoStream_t>(ask(stream));
#endif
}

bool is_capturing(const c10::Stream& stream) {
#ifdef SETO_TORCH_HAS_CAPTURE_QUESTION
  return c10::impl::VirtualGuardImpl(stream.device_type()).isStreamCapturing(stream);
#else
  (void)stream;
  return false;
#endif
}

}  // namespace seto::torch_backend

#pragma once

#include <c10/core/Stream.h>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// Facts about a stream of torch that only the library of its device knows. This backend is not linked to it, so one build serves
// torch with and without CUDA.

// The CUDA stream. Older versions of torch tell it only to Python.
[[nodiscard]] setoStream_t native_handle(const c10::Stream& stream);
// Sets the function that asks Python. The module does this when it is loaded.
void ask_for_native_handles_by(void* (*function)(const c10::Stream& stream));

// Whether a graph is captured on the stream. Older versions of torch do not tell it; then it is false.
[[nodiscard]] bool is_capturing(const c10::Stream& stream);

}  // namespace seto::torch_backend

#include "src/torch/errors.h"

namespace seto::torch_backend {
namespace {

template <class Error>
std::exception_ptr made(const std::string& text) {
  return std::make_exception_ptr(Error({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, text));
}

std::string with_kind(setoResult_t result, const std::string& text) {
  return std::string(result == setoTimeout ? "seto: Timed out - " : "seto: ") +
         (text.empty() ? setoGetErrorString(result) : text);
}

}  // namespace

std::exception_ptr exception_of(setoResult_t result, const std::string& text) {
  if (result == setoInvalidArgument) return made<ArgumentError>(with_kind(result, text));
  return made<c10::DistBackendError>(with_kind(result, text));
}

std::exception_ptr making_exception_of(setoResult_t result, const std::string& text) {
  if (result == setoInvalidArgument) return made<ArgumentError>(with_kind(result, text));
  if (result == setoInvalidUsage) return made<c10::DistBackendError>(with_kind(result, text));
  return made<c10::DistNetworkError>(with_kind(result, text));
}

void check(setoResult_t result, const char* doing) {
  if (result == setoSuccess) return;
  std::rethrow_exception(exception_of(result, std::string(doing) + ": " + setoGetLastError(nullptr)));
}

}  // namespace seto::torch_backend

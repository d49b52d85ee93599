#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// A wrong argument on this rank. In Python it is both a ValueError and a RuntimeError, because torch's backends raise one or the
// other.
class ArgumentError final : public c10::ValueError {
 public:
  using c10::ValueError::ValueError;
};

// Throws the exception that users of torch expect, with the library's text: ArgumentError, DistNetworkError if a group cannot be
// made, DistBackendError for later failures.
[[nodiscard]] std::exception_ptr exception_of(setoResult_t result, const std::string& text);
[[nodiscard]] std::exception_ptr making_exception_of(setoResult_t result, const std::string& text);

// Throws unless the result is a success. `doing` is part of the text, for example "new_group".
void check(setoResult_t result, const char* doing);

}  // namespace seto::torch_backend

#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// An argument that is wrong on this rank. In Python both a ValueError and a RuntimeError: torch's backends raise one or the
// other.
class ArgumentError final : public c10::ValueError {
 public:
  using c10::ValueError::ValueError;
};

// The exception that users of torch catch, with the library's own text: ArgumentError, DistNetworkError for a group that could
// not be made, DistBackendError for all that goes wrong in it later.
[[nodiscard]] std::exception_ptr exception_of(setoResult_t result, const std::string& text);
[[nodiscard]] std::exception_ptr making_exception_of(setoResult_t result, const std::string& text);

// Throws for what is no success. `doing`: "new_group", for the text.
void check(setoResult_t result, const char* doing);

}  // namespace seto::torch_backend

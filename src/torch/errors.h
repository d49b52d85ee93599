#pragma once

#include <exception>
#include <string>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// The exception that users of torch catch, with the library's own text: ValueError for an argument that is wrong on this rank,
// DistNetworkError for a group that could not be made, DistBackendError for all that goes wrong in it later.
[[nodiscard]] std::exception_ptr exception_of(setoResult_t result, const std::string& text);
[[nodiscard]] std::exception_ptr making_exception_of(setoResult_t result, const std::string& text);

// Throws for what is no success. `doing`: "new_group", for the text.
void check(setoResult_t result, const char* doing);

}  // namespace seto::torch_backend

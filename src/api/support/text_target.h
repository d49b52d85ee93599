#pragma once

#include <cstddef>
#include <string>

#include "src/base/result.h"

namespace seto::api {

// The place where a function of the C API writes its text, as the caller states it.
struct Target {
  char* text;
  std::size_t capacity;
  std::size_t* size;
};

Status check_target(const Target& target);

// Writes what fits, always with a final zero, and the length of the whole text.
Status write(const Target& target, const Result<std::string>& text);

}  // namespace seto::api

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "include/seto/seto.h"
#include "src/base/result.h"

namespace seto::command {

// A numpy.save file: little-endian floats, any shape.
struct NumpyArray {
  setoDataType_t type = setoFloat32;
  std::size_t count = 0;
  std::string_view data;  // points into the file's bytes
};

// The file is untrusted.
Result<NumpyArray> parse_npy(std::string_view file);

}  // namespace seto::command

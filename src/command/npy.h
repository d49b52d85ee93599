#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "include/seto/seto.h"
#include "src/base/result.h"

namespace seto::command {

// An array as numpy.save writes it: of little-endian floats, any shape.
struct NumpyArray {
  setoDataType_t type = setoFloat32;
  std::size_t count = 0;
  std::string_view data;  // of the file's bytes
};

// The file may be anything.
Result<NumpyArray> parse_npy(std::string_view file);

}  // namespace seto::command

#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// How elements travel that are only moved: as themselves where the library knows the type, so that ranks that disagree are told
// so; else as bytes. `elements` of the library's type make one of torch's.
struct Moved {
  setoDataType_t type;
  std::size_t elements;
};
[[nodiscard]] Moved moved_as(c10::ScalarType type);

// How elements are reduced.
struct Reduced {
  setoDataType_t type;
  std::size_t elements = 1;                   // of a complex number: 2
  std::optional<c10::ScalarType> widened_to;  // what the library does not know is reduced in this type, and rounded back
  std::optional<setoRedOp_t> op;              // none: a product with a factor before the sum, made for each communicator
};
// Throws ArgumentError for what has no meaning (a product of complex numbers), or is not supported.
[[nodiscard]] Reduced reduced_as(c10::ScalarType type, const c10d::ReduceOp& op);

}  // namespace seto::torch_backend

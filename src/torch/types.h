#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// How elements that are only moved are sent: in their own type if the library has it, so that a mismatch between ranks is
// reported; else as bytes. One element of torch is `elements` elements of the library's type.
struct Moved {
  setoDataType_t type;
  std::size_t elements;
};
[[nodiscard]] Moved moved_as(c10::ScalarType type);

// How elements of a type are reduced.
struct Reduced {
  setoDataType_t type;
  std::size_t elements = 1;                   // 2 for a complex number
  std::optional<c10::ScalarType> widened_to;  // a type that the library lacks is reduced in this type and rounded back
  std::optional<setoRedOp_t> op;              // empty: a sum with a factor before it, which is created for each communicator
};
// Throws ArgumentError for combinations that have no meaning (a product of complex numbers) or are not supported.
[[nodiscard]] Reduced reduced_as(c10::ScalarType type, const c10d::ReduceOp& op);

}  // namespace seto::torch_backend

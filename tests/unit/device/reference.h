#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/types.h"

namespace seto::reference {

// A second implementation of the reduce contract that shares no method with the kernels: one value at a time, narrow floats
// through sorted tables of all values of the format.

using Bytes = std::vector<std::uint8_t>;

struct Fold {
  DataType type;
  ReduceOp op;
  std::uint64_t scaled_sources;
  double scalar;  // exact in the accumulator type
  std::uint32_t divisor;
};

Bytes reduce(const Fold& fold, const std::vector<Bytes>& sources, std::size_t count);

// The scalar of a fold as its accumulator type's bytes.
Bytes scalar_bytes(const Fold& fold);

float widened(DataType type, std::uint32_t bits);
std::uint32_t narrowed(DataType type, float value);

// Empty if equal; otherwise the first element that differs.
std::string difference(DataType type, const Bytes& expected, const std::uint8_t* actual, std::size_t count);

}  // namespace seto::reference

#pragma once

#include "src/codec/codec.h"

namespace seto {

// Each returns the functions for the best instruction set of this machine, chosen once, so a call looks nothing up.
struct CodecKernels {
  EncodeFunction nearest;
  EncodeFunction stochastic;
  DecodeFunction decode;
  DecodeFunction accumulate;
};

CodecKernels half_kernels(Codec codec, DataType type);     // fp16, bf16
CodecKernels float8_kernels(Codec codec, DataType type);   // e4m3, e5m2
CodecKernels integer_kernels(Codec codec, DataType type);  // int8, int4

}  // namespace seto

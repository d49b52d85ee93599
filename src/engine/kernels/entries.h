#pragma once

#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/interpreter.h"

// The entry kernel of one element type: each of its blocks executes the device program of one rank. A file kernels_<name>.cu
// expands this once, so that the build compiles the kernels side by side. `name` is that of name_of(), which the library puts
// after "seto_run_" to find the kernel.
#define SETO_KERNEL_OF(kernel, type, encoding)                                                                     \
  extern "C" __global__ void __launch_bounds__(seto::kernels::kMostThreads, 1)                                     \
      kernel(const __grid_constant__ seto::kernels::DeviceArguments arguments) {                                   \
    __shared__ seto::kernels::BlockMemory memory;                                                                  \
    using Type = seto::kernels::Number<seto::DataType::type>;                                                      \
    seto::kernels::BlockInterpreter<Type, seto::kernels::Encoding::encoding>(arguments, memory, blockIdx.x).run(); \
  }

#define SETO_PLAIN_KERNEL(name, type) SETO_KERNEL_OF(seto_run_##name, type, none)
#define SETO_CODED_KERNEL(name, type) SETO_KERNEL_OF(seto_run_coded_##name, type, some)

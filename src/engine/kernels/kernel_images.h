#pragma once

#include "src/device/cuda/kernel_module.h"

namespace seto::kernels {

// The kernels that the build embedded (cmake/SetoKernels.cmake): one image for each source kernels_<name>.cu. Without nvcc there
// are none.
[[nodiscard]] cuda::KernelImages kernel_images();

}  // namespace seto::kernels

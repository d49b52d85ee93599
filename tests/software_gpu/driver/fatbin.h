#pragma once

#include <string>

namespace seto::software_gpu::driver {

// The PTX of an image of kernels for a GPU of this compute capability (90 is 9.0): PTX itself, or the newest PTX of a fatbin
// that such a GPU can run. Throws DriverError.
[[nodiscard]] std::string ptx_of_image(const void* image, int capability);

}  // namespace seto::software_gpu::driver

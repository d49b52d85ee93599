#include "tests/device_engine/kernel_text.h"

#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/fatbin.h"

namespace seto::support {

std::string image_name(const BoundProgram& program) {
  return (program.codec != 0 ? "coded_" : "") + std::string(name_of(program.type));
}

std::string kernel_name(const BoundProgram& program) { return "seto_run_" + image_name(program); }

std::string kernel_ptx(const BoundProgram& program) {
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    if (image.name == image_name(program)) return software_gpu::driver::ptx_of_image(image.data, kCapability);
  return {};
}

}  // namespace seto::support

#include "src/engine/kernels/kernel_images.h"

#include <iterator>

#include "kernel_list.h"

// The assembler file that embeds the images defines where each begins and ends.
#define SETO_DECLARE_IMAGE(name) extern "C" const std::byte seto_kernels_##name[], seto_kernels_##name##_end[];
SETO_KERNEL_IMAGES(SETO_DECLARE_IMAGE)

namespace seto::kernels {

cuda::KernelImages kernel_images() {
#define SETO_LIST_IMAGE(name) \
  {#name, seto_kernels_##name, static_cast<std::size_t>(seto_kernels_##name##_end - seto_kernels_##name)},
  static const cuda::KernelImage images[] = {SETO_KERNEL_IMAGES(SETO_LIST_IMAGE){}};
  constexpr std::size_t kCount = std::size(images) - 1;
  if (kCount == 0) return {{}, "none", SETO_NO_KERNELS_BECAUSE};
  return {{images, kCount}, SETO_KERNEL_ARCHITECTURES, "built by nvcc " SETO_NVCC_RELEASE};
}

}  // namespace seto::kernels

#include "src/report/device/gpu_figures.h"

namespace seto {

const GpuFigures* figures_of(const Gpu& gpu) {
  for (const GpuFigures& figures : kGpuFigures)
    if (gpu.sm >= figures.least_sm) return &figures;
  return nullptr;
}

double pci_payload_bytes_per_second(const PciDevice& device) {
  if (device.generation < 1 || device.generation > 6 || device.lanes < 1) return 0;
  return 0.1875e9 * (1 << (device.generation - 1)) * device.lanes;
}

const NcclFigure* nccl_figure(std::uint64_t bytes) {
  for (const NcclFigure& figure : kNcclFigures)
    if (bytes >= figure.least_bytes && bytes <= figure.most_bytes) return &figure;
  return nullptr;
}

}  // namespace seto

#include "src/report/device/gpu_figures.h"

namespace seto {

const GpuFigures* figures_of(const Gpu& gpu) {
  for (const GpuFigures& figures : kGpuFigures)
    if (gpu.sm >= figures.least_sm) return &figures;
  return nullptr;
}

const NcclFigure* nccl_figure(std::uint64_t bytes) {
  for (const NcclFigure& figure : kNcclFigures)
    if (bytes >= figure.least_bytes && bytes <= figure.most_bytes) return &figure;
  return nullptr;
}

}  // namespace seto

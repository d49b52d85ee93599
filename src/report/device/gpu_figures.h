#pragma once

#include <cstdint>
#include <string>

#include "src/core/choice/gpu_paths.h"
#include "src/topology/graph/graph_views.h"

namespace seto {

// Figures of GPUs that others have published. Each stands beside its source. Those of links are in src/core/choice/gpu_paths.h,
// because choice takes them, too.
struct GpuFigures {
  int least_sm = 0;       // of the generation: compute capability times ten
  const char* name = "";  // the GPU of that generation whose data sheet holds
  double memory_bytes_per_second = 0;
  double block_bytes_per_second = 0;
};

// Memory: NVIDIA's data sheets of the named GPUs.
// A block: NCCL 2.20 (b6475625), src/graph/tuning.cc, perChMaxRingLL128Bws: what one channel, which is one block, sends in a ring
// at most. Two operands are read and one is written for each byte that it sends, so a block moves three times that. NCCL's table
// has nothing after Hopper.
inline constexpr double kOperandsOfRingStep = 3;
inline constexpr GpuFigures kGpuFigures[] = {
    {100, "B200", 8.0e12, kOperandsOfRingStep * 36.7e9},   {90, "H100 SXM", 3.35e12, kOperandsOfRingStep * 36.7e9},
    {86, "A40", 0.696e12, kOperandsOfRingStep * 20e9},     {80, "A100 SXM 80 GB", 2.039e12, kOperandsOfRingStep * 20e9},
    {70, "V100 SXM2", 0.9e12, kOperandsOfRingStep * 20e9}, {60, "P100 SXM2", 0.732e12, kOperandsOfRingStep * 20e9},
};

// The share of the data sheet's rate that a copy reaches: 2,500 GB/s read and written of 3,350 (H100; p2pBandwidthLatencyTest in
// nccl#1264).
inline constexpr double kMemoryShare = 0.75;

// The load of a word beyond the caches: 600 cycles (upper end of the table in "NVLink, NVSwitch, and GPU Interconnect",
// fridayswithfaraday.com) of 1,755 MHz (chipsandcheese.com, "Nvidia's H100").
inline constexpr double kMemoryLatencyNs = 340;
// A barrier of 512 threads: some 50 cycles. Assumed, no published figure was found.
inline constexpr double kBarrierNs = 30;
// From a launch to the next one in a stream: a kernel that copies within a GPU takes 2.1 us (p2pBandwidthLatencyTest,
// cuda-samples#230).
inline constexpr double kLaunchNs = 2100;

// The figures of a generation; null for older or unknown GPUs.
[[nodiscard]] const GpuFigures* figures_of(const Gpu& gpu);

// A figure of NCCL for all_reduce on eight H100 joined by NVSwitch. Either times or a bandwidth is given.
struct NcclFigure {
  std::uint64_t least_bytes = 0, most_bytes = 0;
  double least_us = 0, most_us = 0;
  double algorithm_gb = 0;  // bytes of the buffer in a second, in GB
};
// Read off the plots of microsoft/mscclpp, docs/dsl/results.md, to some 5 %. Bytes of a bus are 2 (n - 1) / n = 1.75 of those of
// the algorithm.
inline constexpr const char* kNcclSource =
    "NCCL: microsoft/mscclpp, docs/dsl/results.md, 8 x H100, read off plots to some 5 %, launch included; from 4M on with NVLS, "
    "which "
    "adds in the switches. Its ring alone: 370 GB/s (nccl-tests#212), 365 to 370 (nccl#1455)";
inline constexpr NcclFigure kNcclFigures[] = {
    {1 << 10, 64 << 10, 15, 17.8, 0}, {128 << 10, 128 << 10, 18.2, 18.2, 0}, {512 << 10, 512 << 10, 19, 19, 0},
    {1 << 20, 1 << 20, 24, 24, 0},    {4 << 20, 4 << 20, 0, 0, 85},          {16 << 20, 16 << 20, 0, 0, 130},
    {64 << 20, 64 << 20, 0, 0, 205},  {1 << 30, 1 << 30, 0, 0, 275},
};
[[nodiscard]] const NcclFigure* nccl_figure(std::uint64_t bytes);

}  // namespace seto

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "src/topology/graph/graph_views.h"

namespace seto {

// The ways by which a GPU reaches others, as far as the topology knows them: bytes that a rank can state to the others.
struct GpuPaths {
  enum class Target : std::uint8_t { gpu, gpu_switch, hidden_switch };
  // Parallel GPU links to one target.
  struct Bundle {
    std::uint32_t domain = 0;
    std::uint8_t bus = 0;
    std::uint8_t device_and_function = 0;
    std::uint8_t links = 0;
    Target target = Target::hidden_switch;
  };
  // A PCI device, and its link to the one above it.
  struct Port {
    std::uint32_t domain = 0;
    std::uint8_t bus = 0;
    std::uint8_t device_and_function = 0;
    std::uint8_t generation = 0;  // 0: unknown
    std::uint8_t lanes = 0;       // 0: unknown
  };
  static constexpr std::size_t kMostBundles = 18;
  static constexpr std::size_t kMostPorts = 8;

  std::int32_t sm = -1;  // compute capability times ten; -1: unknown
  std::uint16_t bundle_count = 0;
  std::uint16_t port_count = 0;  // 0: nothing is known
  std::array<Bundle, kMostBundles> bundles{};
  std::array<Port, kMostPorts> ports{};  // the last one is the GPU
};
static_assert(std::is_trivially_copyable_v<GpuPaths> && std::has_unique_object_representations_v<GpuPaths>);

// The facts of a topology about a GPU. A longer PCI path loses the ports that are nearest to the processor.
[[nodiscard]] GpuPaths paths_of(const GpuPlace& gpu);

// How the bytes between two GPUs go, and the constants that are assumed until they are measured.
enum class GpuMedium : std::uint8_t { unknown, memory, pci, links };
struct GpuPairCost {
  GpuMedium medium = GpuMedium::unknown;
  double hop_seconds = 0;  // a flag behind the stores that it tells of
  double bytes_per_second = 0;
  int links = 0;
};
// Between two GPUs of a host: their GPU links, direct or by a switch, else the slowest PCI link between them. Absent if neither
// is known. `may_use_links`: the driver lets one of them reach the memory of the other.
[[nodiscard]] std::optional<GpuPairCost> cost_between(const GpuPaths& one, const GpuPaths& other, bool may_use_links);

// Figures that others have published, each beside its source.

// The payload of one GPU link in one direction, by the generation of the GPU: NCCL 2.30.7, src/graph/topo.h. 18 links of an H100:
// 371 GB/s of the 450 GB/s of the data sheet; measured 376 GB/s (nccl#1264) and 365 to 370 (nccl#1455). Absent: an older or
// unknown GPU.
[[nodiscard]] std::optional<double> gpu_link_payload_bytes_per_second(int sm);
// PCI Express between GPUs: NCCL 2.30.7, src/graph/topo.cc: lanes times 0.1875 GB/s of generation 1, doubled by each further one.
// 0: the link is not known.
[[nodiscard]] double pci_payload_bytes_per_second(int generation, int lanes);

// A flag in a peer's memory, from its store until a poll there sees it: NCCL 2.20, src/graph/tuning.cc, hwLat of a ring with LL,
// where data and flag are one store: 0.6 us over NVLink, 1.0 us over PCIe.
inline constexpr double kLinkFlagNs = 600;
inline constexpr double kPciFlagNs = 1000;
// A release waits until its stores have arrived, which is one way there and one back. Derived from the row above, not published.
inline constexpr double kFenceFlags = 2;

}  // namespace seto

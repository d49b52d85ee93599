#include "src/report/device/device_model.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "src/core/device_memory/device_costs.h"
#include "src/report/device/gpu_figures.h"
#include "src/report/explain_tiers.h"
#include "src/topology/draw/number_words.h"
#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"

namespace seto {
namespace {

constexpr double kNsOfSecond = 1e9;
constexpr const char* kCompleteIt = "write the file where the GPUs are, with seto topo --xml, or take --topo oci-h100";

// In the order of their ranks, if all have different ones.
std::vector<GpuPlace> gpus_by_rank(const TopologyHost& host) {
  std::vector<GpuPlace> gpus = gpus_of(host);
  std::vector<GpuPlace> sorted = gpus;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.gpu->rank < b.gpu->rank; });
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i].gpu->rank < 0 || (i > 0 && sorted[i].gpu->rank == sorted[i - 1].gpu->rank)) return gpus;
  return sorted;
}

Result<std::vector<GpuPlace>> chosen_gpus(const TopologyGraph& graph, int ranks) {
  if (std::all_of(graph.hosts.begin(), graph.hosts.end(), [](const TopologyHost& host) { return gpus_of(host).empty(); }))
    return failure(
        Code::invalid_argument,
        "the topology has no GPU, and a call on GPU memory needs two: name a file that has GPUs, or --topo oci-h100, or "
        "leave out --memory device");
  if (graph.hosts.size() != 1)
    return failure(Code::invalid_argument,
                   "the topology has %zu hosts; calls on GPU memory are predicted inside one node: name the file of one host",
                   graph.hosts.size());
  std::vector<GpuPlace> gpus = gpus_by_rank(graph.hosts.front());
  if (ranks == 0) ranks = static_cast<int>(gpus.size());
  if (ranks < 2 || ranks > static_cast<int>(gpus.size()))
    return failure(Code::invalid_argument, "ranks: %d; a call on GPU memory has a rank for each GPU, 2 to %zu of them", ranks,
                   gpus.size());
  gpus.resize(static_cast<std::size_t>(ranks));
  return gpus;
}

class Modelling final {
 public:
  Modelling(const std::vector<GpuPlace>& gpus, std::uint32_t blocks) : gpus_(gpus) {
    model_.ranks = static_cast<int>(gpus.size());
    model_.blocks = blocks;
  }

  Result<DeviceModel> model() && {
    SETO_TRY(find_figures());
    if (are_linked()) {
      add_gpu_links();
    } else {
      SETO_TRY(add_pci());
    }
    add_times();
    add_costs();
    return std::move(model_);
  }

 private:
  void assume(std::string text) { model_.assumptions.push_back(std::move(text)); }

  // The figures of the oldest generation hold for all GPUs.
  Status find_figures() {
    for (const GpuPlace& place : gpus_) {
      const GpuFigures* const figures = figures_of(*place.gpu);
      const std::string address = text_of(place.path.back()->address);
      if (figures == nullptr)
        return failure(Code::invalid_argument, "the topology does not state a generation of GPU %s that is known (sm=\"90\"): %s",
                       address.c_str(), kCompleteIt);
      if (figures_ == nullptr || figures->least_sm < figures_->least_sm) figures_ = figures;
    }
    return {};
  }

  [[nodiscard]] bool are_linked() const {
    for (const GpuPlace& from : gpus_)
      for (const GpuPlace& to : gpus_)
        if (&from != &to && !gpu_link(from, to)) return false;
    return true;
  }

  // Links by their number: the graph has the rate of the data sheet.
  [[nodiscard]] double payload(const Gpu& gpu, double sheet_bytes_per_second) const {
    return sheet_bytes_per_second / gpu_link_bytes_per_second(gpu).value_or(1) *
           gpu_link_payload_bytes_per_second(gpu.sm).value_or(0);
  }

  void add_gpu_links() {
    auto pairs = std::make_shared<std::vector<double>>();
    bool switched = true;
    double slowest = 0;
    for (const GpuPlace& from : gpus_) {
      const double port = payload(*from.gpu, gpu_bytes_per_second(from).value_or(0));
      slowest = slowest == 0 ? port : std::min(slowest, port);
      model_.devices.port_ns_per_byte.push_back(kNsOfSecond / port);
      for (const GpuPlace& to : gpus_) {
        const std::optional<LinkFacts> link = gpu_link(from, to);
        const double rate = link ? payload(*from.gpu, link->bytes_per_second.value_or(0)) : port;
        if (&from != &to) switched = switched && link->medium == LinkMedium::nvswitch;
        pairs->push_back(kNsOfSecond / rate);
      }
    }
    take(std::move(pairs));
    flag_ns_ = kLinkFlagNs;
    name_machine(switched ? "joined by NVSwitch" : "joined by NVLink");
    model_.has_nccl_figures = switched && model_.ranks == 8 && is_h100();
    assume("links: " + rate_words(slowest) +
           " of a GPU in one direction, payload (NCCL 2.30.7, src/graph/topo.h, for each link); " + "stores to peers reach it");
  }

  Status add_pci() {
    auto pairs = std::make_shared<std::vector<double>>();
    double slowest = 0;
    for (const GpuPlace& from : gpus_) {
      const double rate = pci_payload_bytes_per_second(from.path.back()->generation, from.path.back()->lanes);
      if (rate == 0)
        return failure(Code::invalid_argument, "the topology states neither GPU links nor the PCI link of GPU %s: %s",
                       text_of(from.path.back()->address).c_str(), kCompleteIt);
      model_.devices.port_ns_per_byte.push_back(kNsOfSecond / rate);
      slowest = slowest == 0 ? rate : std::min(slowest, rate);
    }
    const std::vector<double>& ports = model_.devices.port_ns_per_byte;
    for (const double from : ports)
      for (const double to : ports) pairs->push_back(std::max(from, to));
    take(std::move(pairs));
    flag_ns_ = kPciFlagNs;
    name_machine("over PCI Express");
    assume("some pair of GPUs has no GPU links, so all bytes go over PCI Express: " + rate_words(slowest) +
           " of a GPU in one direction (NCCL 2.30.7, src/graph/topo.cc); switches and processors between GPUs limit nothing");
    return {};
  }

  void take(std::shared_ptr<std::vector<double>> pairs) {
    model_.devices.pair_ns_per_byte = [pairs = std::move(pairs), ranks = gpus_.size()](Rank from, Rank to) {
      return (*pairs)[static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to)];
    };
  }

  [[nodiscard]] bool is_h100() const { return figures_->least_sm == 90; }
  void name_machine(const char* how) { model_.machine = std::to_string(model_.ranks) + " x " + figures_->name + ", " + how; }

  void add_times() {
    SimulatedDevices& devices = model_.devices;
    devices.flag_ns = flag_ns_;
    devices.fence_ns = kFenceFlags * flag_ns_;
    devices.local_fence_ns = kMemoryLatencyNs;
    devices.barrier_ns = kBarrierNs;
    devices.latency_ns = kMemoryLatencyNs;
    const double memory = kMemoryShare * figures_->memory_bytes_per_second;
    devices.memory_ns_per_byte = kNsOfSecond / memory;
    devices.block_ns_per_byte = kNsOfSecond / figures_->block_bytes_per_second;
    assume("a flag takes " + duration_text(flag_ns_ * 1e-9) +
           " to a peer's poll (NCCL 2.20, src/graph/tuning.cc, hwLat of LL); a release waits for its stores for twice that "
           "(there and "
           "back; not published)");
    assume("GPU memory: " + rate_words(memory) + " read and written (75 % of the data sheet of an " + figures_->name +
           "; the share is that of an H100 in nccl#1264), first bytes after " + duration_text(kMemoryLatencyNs * 1e-9) +
           " (600 cycles); no byte stays in a cache, and as many bytes come from peers as go to them");
    assume(
        "a block loads and stores " + rate_words(figures_->block_bytes_per_second) +
        " (three operands of NCCL's limit of a channel, src/graph/tuning.cc, perChMaxRingLL128Bws); a barrier of a block takes " +
        duration_text(kBarrierNs * 1e-9) + " (assumed)");
    assume(
        "the blocks of a GPU keep step, so its links are idle while they wait (at best: they overlap, and the busiest resource "
        "never waits); all GPUs begin at once");
    assume(
        "two slots for each channel, or messages that are read in the buffers of the peers, whichever is faster; of the slices "
        "that "
        "were tried the fastest, with at most 64 MiB of slots on a GPU");
    assume("the launch is not contained: " + duration_text(kLaunchNs * 1e-9) +
           " more for a call outside of a captured graph (cuda-samples#230)");
  }

  // The ranks state what the topology says of their GPUs, as they do when a communicator is made.
  void add_costs() {
    std::vector<RankStatement> statements(gpus_.size());
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      statements[rank].paths = paths_of(gpus_[rank]);
      std::memcpy(statements[rank].gpu.bytes, &rank, sizeof rank);  // no two ranks share one
    }
    const GpuPairCost slowest = slowest_pair(Tiers::flat(model_.ranks), statements, RelayedPairs());
    model_.costs = assumed_device_costs(CostModel(), slowest);
    assume("cut as now: algorithm, slices and marks by the constants that the library takes from this topology (" +
           duration_text(slowest.hop_seconds) + " for a hop, " + rate_words(slowest.bytes_per_second) +
           "), which a job replaces by what it measures; from 16 KiB on messages are read in the buffers of the peers where the "
           "plan "
           "permits it, the others go through slots for all stages, 3.75 MiB of them");
  }

  const std::vector<GpuPlace>& gpus_;
  const GpuFigures* figures_ = nullptr;
  double flag_ns_ = 0;
  DeviceModel model_;
};

}  // namespace

Result<DeviceModel> device_model_of(const TopologyGraph& graph, int ranks, std::uint32_t blocks) {
  if (blocks == 0 || blocks > kMostBlocks)
    return failure(Code::invalid_argument, "blocks: %u is not one of 1 to %u", blocks, kMostBlocks);
  TopologyGraph complete = graph;
  assume_missing(complete);
  SETO_ASSIGN(const std::vector<GpuPlace> gpus, chosen_gpus(complete, ranks));
  return Modelling(gpus, blocks).model();
}

}  // namespace seto

#include <string>
#include <utility>
#include <vector>

#include "src/api/support/handles.h"
#include "src/api/support/text_target.h"
#include "src/api/support/this_host.h"
#include "src/api/support/topology_files.h"
#include "src/base/text.h"
#include "src/core/communicator/communicator.h"
#include "src/device/cuda/gpu_facts.h"
#include "src/topology/draw/topology_svg.h"
#include "src/topology/draw/topology_text.h"
#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/job_part.h"
#include "src/topology/xml/topology_file.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// NVML describes GPUs and their links; whether this process can use them, only the driver of CUDA knows.
TopologyHost host_with_driver() {
  TopologyHost host = this_host();
  host.notes.push_back("CUDA: " + cuda::line_of(cuda::report_gpus()));
  return host;
}

TopologyGraph this_machine() {
  TopologyGraph graph;
  graph.hosts.push_back(host_with_driver());
  return graph;
}

Result<std::string> described(TopologyGraph graph, int format) {
  if (format == setoFormatXml) return write_nccl(graph);
  assume_missing(graph);
  if (format == setoFormatSvg) return topology_svg(graph);
  return format == setoFormatJson ? topology_json(graph) : topology_text(graph);
}

// The part of a job that this rank tells the others.
Result<std::string> part_of(const Communicator& communicator) {
  if (!tells_topology(communicator.tiers(), communicator.rank())) return std::string();
  TopologyHost host = host_with_driver();
  // By its id other jobs find the host in a topology file.
  if (!communicator.config().host_id.empty()) host.name = plain_ascii(communicator.config().host_id);
  if (host.name.empty()) host.name = "rank " + std::to_string(communicator.rank());
  return write_nccl(part_of_job(std::move(host), communicator.sites(), communicator.rank()), FileContent::everything);
}

}  // namespace

extern "C" {

setoResult_t setoCommTopology(setoComm_t comm, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    const std::shared_ptr<Communicator> communicator = comm->communicator();
    if (communicator == nullptr) return comm->why_unusable();
    return write(target, part_of(*communicator));
  });
}

setoResult_t setoTopology(const setoTopologyText_t* files, size_t count, setoFormat_t format, char* text, size_t capacity,
                          size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    const int wanted = number_in(format);
    if (wanted < setoFormatText || wanted > setoFormatSvg)
      return failure(Code::invalid_argument, "format: %d is not a setoFormat_t", wanted);
    TopologyGraph graph;
    if (count == 0) {
      graph = this_machine();
    } else {
      SETO_ASSIGN(graph, graph_of(files, count));
    }
    return write(target, described(std::move(graph), wanted));
  });
}

}  // extern "C"

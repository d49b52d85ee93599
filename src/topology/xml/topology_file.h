#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

struct XmlDocument;

// Reads a file of NCCL's format, of AMD's variant of it, or of hwloc's. A file that states only a part is a hint: everything that
// it does not state is unknown in the graph. The text of an error begins with the line.
Result<TopologyGraph> read_topology(std::string_view text);

// The readers of the two formats, for a document that has been parsed.
Result<TopologyGraph> read_nccl(const XmlDocument& document);
Result<TopologyGraph> read_hwloc(const XmlDocument& document);

// How much of a graph is written. `portable`: not the addresses, MTU, state and route of network interfaces, UUIDs and product
// names of GPUs, sources of devices, and notes, because files travel to other hosts. `everything`: these too, as attributes and
// elements of our own, for a graph that ranks of a job exchange. Notes need a host with a name.
enum class FileContent : std::uint8_t { portable, everything };

// Writes NCCL's format (AMD's variant if a GPU has AMD's links). Names, sites and measured links have no place in it: they become
// elements of our own, which NCCL skips. What is written is read back as it was. Hosts need different names.
std::string write_nccl(const TopologyGraph& graph, FileContent content = FileContent::portable);

// The number by which NCCL's format tells hosts apart. A name that is such a number in hexadecimal (0x1f) stands for itself.
std::uint64_t host_hash_of(std::string_view name);
std::string hash_text(std::uint64_t hash);

}  // namespace seto

#include "src/topology/xml/topology_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "src/topology/graph/graph_views.h"
#include "src/topology/xml/attributes.h"
#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

Result<TopologyGraph> within_limits(const XmlElement& root, Result<TopologyGraph> read) {
  if (!read.ok()) return read;
  for (const TopologyHost& host : read.value().hosts)
    if (const std::size_t gpus = gpus_of(host).size(); gpus > kMostGpusOfHost)
      return element_failure(
          root, std::to_string(gpus) + " GPUs of one host; at most " + std::to_string(kMostGpusOfHost) + " are read");
  return read;
}

}  // namespace

Result<TopologyGraph> read_topology(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] != '<')
    return failure(
        Code::invalid_argument,
        "line %zu: this is not XML; wanted is a topology file: NCCL's, which begins with <system>, or hwloc's with <topology>",
        1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first), '\n')));
  SETO_ASSIGN(const XmlDocument document, parse_xml(text));
  if (document.root.name == "system") return within_limits(document.root, read_nccl(document));
  if (document.root.name == "topology") return within_limits(document.root, read_hwloc(document));
  if (document.root.name == "graphs")
    return element_failure(document.root,
                           "this file holds rings and trees that NCCL found, not a topology; give the topology file");
  return element_failure(document.root, "is not a topology; NCCL's files begin with <system>, hwloc's with <topology>");
}

std::uint64_t host_hash_of(std::string_view name) {
  if (name.starts_with("0x")) {
    std::uint64_t stated = 0;
    const auto [at, error] = std::from_chars(name.data() + 2, name.data() + name.size(), stated, 16);
    if (error == std::errc() && hash_text(stated) == name) return stated;
  }
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(hash));
  return text.data();
}

}  // namespace seto

#include "src/api/support/topology_files.h"

#include <string>
#include <utility>
#include <vector>

#include "src/api/support/errors.h"
#include "src/api/support/handles.h"
#include "src/api/support/this_host.h"
#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"

namespace seto::api {
namespace {

Result<GraphPart> read_part(const setoTopologyText_t& file, size_t number) {
  const std::string name = file.name == nullptr ? "file " + std::to_string(number) : file.name;
  if (file.text == nullptr && file.size > 0) return failure(Code::invalid_argument, "files: text %zu is NULL", number);
  if (file.copies < 0) return failure(Code::invalid_argument, "copies: %d is negative", file.copies);
  auto graph = read_topology({file.text, file.size});
  if (!graph.ok()) {
    const std::string why(graph.status().text());
    return failure(Code::invalid_argument, "%s: %s", name.c_str(), why.c_str());
  }
  if (file.isThisMachine != 0) {
    if (graph.value().hosts.size() != 1)
      return failure(Code::invalid_argument, "%s: describes %zu hosts; a file of this machine describes one", name.c_str(),
                     graph.value().hosts.size());
    complete(graph.value().hosts[0], this_host());
  }
  const size_t copies = file.copies == 0 ? 1 : static_cast<size_t>(file.copies);
  return GraphPart{std::move(graph).value(), file.site == nullptr ? "" : file.site, copies};
}

}  // namespace

Result<TopologyGraph> graph_of(const setoTopologyText_t* files, size_t count) {
  if (files == nullptr) return null_argument("files");
  std::vector<GraphPart> parts;
  for (size_t i = 0; i < count; ++i) {
    SETO_ASSIGN(GraphPart part, read_part(files[i], i));
    parts.push_back(std::move(part));
  }
  return join_graphs(std::move(parts));
}

}  // namespace seto::api

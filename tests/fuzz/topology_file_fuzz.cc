#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/xml/topology_file.h"

// A topology that was read is written as the same text after it has been read back, and views accept it; or reading fails with a
// line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto graph = seto::read_topology({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) {
    if (!graph.status().text().starts_with("line ")) std::abort();
    return 0;
  }
  const std::string text = seto::write_nccl(graph.value());
  const auto again = seto::read_topology(text);
  if (!again.ok() || seto::write_nccl(again.value()) != text) std::abort();
  seto::assume_missing(graph.value());
  (void)seto::tiers_of(graph.value());
  return 0;
}

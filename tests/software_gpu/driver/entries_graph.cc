// The capture of streams into graphs, and graphs.
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

void stream_begin_capture(StandIn& s, cuda::Stream stream, cuda::CaptureMode mode) { s.begin_capture(s.stream_of(stream), mode); }

void stream_end_capture(StandIn& s, cuda::Stream stream, cuda::Graph* graph) {
  need(graph);
  *graph = nullptr;
  std::shared_ptr<Graph> made = s.end_capture(s.stream_of(stream));
  *graph = reinterpret_cast<cuda::Graph>(made.get());
  const void* const handle = made.get();
  s.graphs[handle] = std::move(made);
}

void graph_instantiate(StandIn& s, cuda::GraphExec* exec, cuda::Graph handle, unsigned long long) {
  need(exec);
  const auto found = s.graphs.find(handle);
  if (found == s.graphs.end()) throw DriverError(DriverCode::invalid_value, "there is no such graph");
  auto made = std::make_unique<GraphExec>();
  made->graph = std::make_shared<Graph>(*found->second);
  *exec = reinterpret_cast<cuda::GraphExec>(made.get());
  s.graph_execs[made.get()] = std::move(made);
}

void graph_launch(StandIn& s, cuda::GraphExec handle, cuda::Stream stream_handle) {
  const auto found = s.graph_execs.find(handle);
  if (found == s.graph_execs.end()) throw DriverError(DriverCode::invalid_value, "there is no such graph");
  Stream& stream = s.stream_of(stream_handle);
  const Context& context = *stream.context;
  const Done done = s.launch_graph(stream, found->second->graph);
  if (!s.settings().launch_blocking) return;
  s.scheduler().wait_for("a launch with CUDA_LAUNCH_BLOCKING", {done});
  if (context.failed) throw DriverError(*context.failed);
}

void graph_destroy(StandIn& s, cuda::Graph graph) {
  if (s.graphs.erase(graph) == 0) throw DriverError(DriverCode::invalid_value, "there is no such graph");
}

void graph_exec_destroy(StandIn& s, cuda::GraphExec exec) {
  if (s.graph_execs.erase(exec) == 0) throw DriverError(DriverCode::invalid_value, "there is no such graph");
}

}  // namespace

void add_graph_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<stream_begin_capture>(d.stream_begin_capture);
  table.add<stream_end_capture>(d.stream_end_capture);
  table.add<graph_instantiate>(d.graph_instantiate);
  table.add<graph_launch>(d.graph_launch);
  table.add<graph_destroy>(d.graph_destroy);
  table.add<graph_exec_destroy>(d.graph_exec_destroy);
}

}  // namespace seto::software_gpu::driver

// Streams that are captured into graphs, and the launch of graphs.
#include <algorithm>
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/stand_in.h"

namespace seto::software_gpu::driver {
namespace {

// The nodes that no other node waits for.
std::vector<std::size_t> ends_of(const Graph& graph) {
  std::vector<bool> is_end(graph.nodes.size(), true);
  for (const Graph::Node& node : graph.nodes)
    for (const std::size_t before : node.after) is_end[before] = false;
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < is_end.size(); ++i)
    if (is_end[i]) ends.push_back(i);
  return ends;
}

void release_streams(Capture& capture) {
  for (Stream* const member : capture.members) {
    member->capture.reset();
    member->tail.clear();
  }
}

}  // namespace

cuda::CaptureMode& capture_mode_of_thread() {
  thread_local cuda::CaptureMode mode = cuda::CaptureMode::global;
  return mode;
}

void StandIn::begin_capture(Stream& stream, cuda::CaptureMode mode) {
  if (&stream == &stream.context->legacy)
    throw DriverError(DriverCode::stream_capture_unsupported, "the legacy stream cannot be captured");
  if (stream.capture != nullptr) throw DriverError(DriverCode::illegal_state, "the stream is being captured");
  std::erase_if(captures_, [](const auto& capture) { return capture.use_count() == 1; });
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->number = next_capture_++;
  capture->origin = &stream;
  capture->members.insert(&stream);
  stream.capture = capture;
  stream.tail.clear();
  captures_.push_back(std::move(capture));
}

std::shared_ptr<Graph> StandIn::end_capture(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) throw DriverError(DriverCode::illegal_state, "the stream is not being captured");
  if (capture->origin != &stream) throw DriverError(DriverCode::stream_capture_unmatched);
  if (capture->mode != cuda::CaptureMode::relaxed && capture->thread != std::this_thread::get_id())
    throw DriverError(DriverCode::stream_capture_wrong_thread);
  std::vector<std::size_t> ends = ends_of(*capture->graph), joined = stream.tail;
  std::sort(joined.begin(), joined.end());
  const bool all_joined = std::includes(joined.begin(), joined.end(), ends.begin(), ends.end());
  release_streams(*capture);
  std::erase(captures_, capture);
  if (capture->invalid) throw DriverError(DriverCode::stream_capture_invalidated);
  if (!all_joined) throw DriverError(DriverCode::stream_capture_unjoined);
  return capture->graph;
}

Stream* StandIn::captured_before(const Stream& stream) const {
  if (&stream != &stream.context->legacy) return nullptr;
  for (Stream* const other : streams_of(*stream.context))
    if (other->capture != nullptr && (other->flags & cuda::kStreamNonBlocking) == 0) return other;
  return nullptr;
}

void StandIn::check_capture(Stream& stream) {
  if (stream.capture != nullptr && stream.capture->invalid) throw DriverError(DriverCode::stream_capture_invalidated);
  Stream* const other = captured_before(stream);
  if (other == nullptr) return;
  other->capture->invalid = true;
  throw DriverError(DriverCode::stream_capture_implicit);
}

void StandIn::refuse_in_capture(Stream& stream, const char* why) {
  check_capture(stream);
  if (stream.capture == nullptr) return;
  stream.capture->invalid = true;
  throw DriverError(DriverCode::stream_capture_unsupported, why);
}

void StandIn::check_unsafe_call(const std::string& name) {
  const cuda::CaptureMode own = capture_mode_of_thread();
  if (own == cuda::CaptureMode::relaxed) return;
  bool refused = false;
  for (const auto& capture : captures_) {
    const bool of_thread = capture->thread == std::this_thread::get_id() && capture->mode != cuda::CaptureMode::relaxed;
    const bool of_all = own == cuda::CaptureMode::global && capture->mode == cuda::CaptureMode::global;
    if (capture->origin == nullptr || (!of_thread && !of_all)) continue;
    capture->invalid = true;
    refused = true;
  }
  if (refused)
    throw DriverError(DriverCode::stream_capture_unsupported, name + " may wait for the GPU, and a stream is being captured");
}

Done StandIn::issue(Stream& stream, Task task, std::vector<Done> after) {
  check_capture(stream);
  if (stream.capture == nullptr)
    return scheduler_.enqueue(stream, streams_of(*stream.context), std::move(task), std::move(after));
  std::vector<Graph::Node>& nodes = stream.capture->graph->nodes;
  nodes.push_back({.task = std::move(task), .after = stream.tail});
  stream.tail = {nodes.size() - 1};
  return nullptr;
}

void StandIn::record(Event& event, Stream& stream) {
  check_capture(stream);
  if (stream.capture != nullptr) {
    event.capture = stream.capture;
    event.nodes = stream.tail;
    return;
  }
  event.capture.reset();
  event.recorded = issue(stream, Task{.make = [] { return Work{}; }});
}

void StandIn::wait_for_event(Stream& stream, Event& event) {
  check_capture(stream);
  const std::shared_ptr<Capture> captured = event.capture.lock();
  if (captured == nullptr) {
    if (stream.capture != nullptr) {
      stream.capture->invalid = true;
      throw DriverError(DriverCode::stream_capture_isolation);
    }
    if (event.recorded != nullptr) issue(stream, Task{.make = [] { return Work{}; }}, {event.recorded});
    return;
  }
  if (captured->invalid) throw DriverError(DriverCode::stream_capture_invalidated);
  if (stream.capture != nullptr && stream.capture != captured) {
    stream.capture->invalid = captured->invalid = true;
    throw DriverError(DriverCode::stream_capture_merge);
  }
  if (stream.capture == nullptr) {
    stream.capture = captured;
    captured->members.insert(&stream);
    stream.tail.clear();
  }
  for (const std::size_t node : event.nodes)
    if (std::find(stream.tail.begin(), stream.tail.end(), node) == stream.tail.end()) stream.tail.push_back(node);
}

void StandIn::check_event(const Event& event) {
  const std::shared_ptr<Capture> captured = event.capture.lock();
  if (captured == nullptr) return;
  captured->invalid = true;
  throw DriverError(DriverCode::captured_event);
}

Done StandIn::launch_graph(Stream& stream, const std::shared_ptr<const Graph>& graph) {
  if (stream.capture != nullptr) throw DriverError(DriverCode::not_supported, "the stand-in has no graphs within graphs");
  // The first operation makes all nodes wait for the stream, and the last one makes the stream wait for all nodes.
  const Done begin = issue(stream, Task{.make = [] { return Work{}; }});
  std::vector<Done> ends;
  for (const Graph::Node& node : graph->nodes) {
    std::vector<Done> after{begin};
    for (const std::size_t before : node.after) after.push_back(ends[before]);
    ends.push_back(scheduler_.enqueue_alone(*stream.context, node.task, std::move(after)));
  }
  return issue(stream, Task{.make = [] { return Work{}; }}, std::move(ends));
}

}  // namespace seto::software_gpu::driver

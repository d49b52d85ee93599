// Streams, events and host functions.
#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::CaptureMode;
using cuda::CaptureStatus;

void throw_failure(const Context& context) {
  if (context.failed) throw DriverError(*context.failed);
}

void check_ended(const Done& done) {
  if (done != nullptr && !done->done) throw DriverError(DriverCode::not_ready);
}

// The operations that a wait for this stream waits for: the legacy stream stands for all blocking streams of its context.
std::vector<Done> awaited(StandIn& s, const Stream& stream) {
  std::vector<Done> all{stream.last};
  if (&stream == &stream.context->legacy)
    for (const Stream* const other : s.streams_of(*stream.context))
      if ((other->flags & cuda::kStreamNonBlocking) == 0) all.push_back(other->last);
  return all;
}

void stream_create_with_priority(StandIn& s, cuda::Stream* stream, unsigned flags, int priority) {
  need(stream);
  if (flags > cuda::kStreamNonBlocking) throw DriverError(DriverCode::invalid_value);
  *stream = reinterpret_cast<cuda::Stream>(&s.add_stream(flags, priority));
}

void stream_destroy(StandIn& s, cuda::Stream stream) { s.remove_stream(stream); }

void stream_query(StandIn& s, cuda::Stream handle) {
  Stream& stream = s.stream_of(handle);
  s.refuse_in_capture(stream, "a stream that is being captured has no end");
  for (const Done& each : awaited(s, stream)) check_ended(each);
}

void stream_synchronize(StandIn& s, cuda::Stream handle) {
  Stream& stream = s.stream_of(handle);
  s.refuse_in_capture(stream, "a stream that is being captured cannot be waited for");
  const Context& context = *stream.context;
  s.scheduler().wait_for("cuStreamSynchronize", awaited(s, stream));
  throw_failure(context);
}

void stream_get_priority(StandIn& s, cuda::Stream stream, int* priority) { give(priority, s.stream_of(stream).priority); }

void stream_get_ctx(StandIn& s, cuda::Stream stream, cuda::Context* context) {
  need(context);
  *context = reinterpret_cast<cuda::Context>(s.stream_of(stream).context);
}

CaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CaptureStatus::none;
  return stream.capture->invalid ? CaptureStatus::invalidated : CaptureStatus::active;
}

// A question about the legacy stream fails while a stream that it would wait for is being captured. It invalidates nothing.
void check_question(const StandIn& s, const Stream& stream) {
  if (s.captured_before(stream) != nullptr) throw DriverError(DriverCode::stream_capture_implicit);
}

void stream_is_capturing(StandIn& s, cuda::Stream handle, CaptureStatus* status) {
  const Stream& stream = s.stream_of(handle);
  check_question(s, stream);
  give(status, status_of(stream));
}

// Graph and dependencies are for callers that add nodes by themselves, which the stand-in does not offer.
void stream_get_capture_info(StandIn& s, cuda::Stream handle, CaptureStatus* status, std::uint64_t* number, cuda::Graph* graph,
                             const cuda::GraphNode** nodes, const CUgraphEdgeData_st** edges, std::size_t* count) {
  const Stream& stream = s.stream_of(handle);
  check_question(s, stream);
  give(status, status_of(stream));
  if (stream.capture != nullptr) give(number, stream.capture->number);
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  give(count, 0);
}

void thread_exchange_capture_mode(StandIn&, CaptureMode* mode) {
  need(mode);
  std::swap(*mode, capture_mode_of_thread());
}

void launch_host_func(StandIn& s, cuda::Stream handle, cuda::HostFunction function, void* argument) {
  Stream& stream = s.stream_of(handle);
  Scheduler& scheduler = s.scheduler();
  s.issue(stream, Task{.make = [=, &scheduler] {
            auto ended = std::make_shared<Completion>();
            return Work{.start = [=, &scheduler] { scheduler.call_host(function, argument, ended); },
                        .ended = [=] { return ended->done; }};
          }});
}

void event_create(StandIn& s, cuda::Event* event, unsigned) {
  need(event);
  *event = reinterpret_cast<cuda::Event>(&s.add_event());
}

void event_record(StandIn& s, cuda::Event handle, cuda::Stream stream_handle) {
  Event& event = s.event_of(handle);
  Stream& stream = s.stream_of(stream_handle);
  if (event.context != stream.context) throw DriverError(DriverCode::invalid_handle, "the event is of another context");
  s.record(event, stream);
}

void event_query(StandIn& s, cuda::Event handle) {
  const Event& event = s.event_of(handle);
  s.check_event(event);
  check_ended(event.recorded);
}

void event_synchronize(StandIn& s, cuda::Event handle) {
  const Event& event = s.event_of(handle);
  s.check_event(event);
  const Context& context = *event.context;
  s.scheduler().wait_for("cuEventSynchronize", {event.recorded});
  throw_failure(context);
}

void stream_wait_event(StandIn& s, cuda::Stream stream, cuda::Event event, unsigned) {
  s.wait_for_event(s.stream_of(stream), s.event_of(event));
}

void event_destroy(StandIn& s, cuda::Event event) { s.remove_event(event); }

}  // namespace

void add_stream_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<stream_create_with_priority>(d.stream_create_with_priority);
  table.add<stream_destroy>(d.stream_destroy);
  table.add<stream_query>(d.stream_query, kUnsafeInCapture);
  table.add<stream_synchronize>(d.stream_synchronize, kUnsafeInCapture);
  table.add<stream_get_priority>(d.stream_get_priority);
  table.add<stream_get_ctx>(d.stream_get_ctx);
  table.add<stream_is_capturing>(d.stream_is_capturing);
  table.add<stream_get_capture_info>(d.stream_get_capture_info);
  table.add<thread_exchange_capture_mode>(d.thread_exchange_capture_mode, kAnywhere);
  table.add<launch_host_func>(d.launch_host_func);
  table.add<event_create>(d.event_create);
  table.add<event_record>(d.event_record);
  table.add<event_query>(d.event_query, kUnsafeInCapture);
  table.add<event_synchronize>(d.event_synchronize, kUnsafeInCapture);
  table.add<stream_wait_event>(d.stream_wait_event);
  table.add<event_destroy>(d.event_destroy);
}

}  // namespace seto::software_gpu::driver

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/device/cuda/driver_types.h"
#include "tests/software_gpu/driver/memory_table.h"
#include "tests/software_gpu/driver/objects.h"
#include "tests/software_gpu/driver/scheduler.h"
#include "tests/software_gpu/driver/settings.h"
#include "tests/software_gpu/driver/turn_mutex.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu::driver {

// Where a call is permitted, beside the usual: after cuInit, without an error of the current context, not in a host function.
enum Rule : unsigned {
  kAnywhere = 1,         // before cuInit, and after the context has failed
  kUnsafeInCapture = 2,  // it may wait for the GPU: during a capture it fails and invalidates the capture
};

// All state of the driver in this process. Its functions are called with the lock held.
class StandIn final {
 public:
  StandIn(TurnMutex& mutex, const Settings& settings);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] MemoryTable& memory() { return memory_; }

  // Throws if the call may not be made now, or is to fail by the settings.
  void before_call(const std::string& name, unsigned rules);
  void inject(const std::string& errors);
  [[nodiscard]] std::uint64_t calls_of(const std::string& name) const;

  void initialise() { initialised_ = true; }
  [[nodiscard]] std::uint32_t gpu_of(cuda::DeviceNumber device) const;
  [[nodiscard]] Context& primary(std::uint32_t gpu) { return *contexts_[gpu]; }
  [[nodiscard]] Context& context_of(cuda::Context handle);
  // The context of the calling thread.
  [[nodiscard]] Context& current();
  [[nodiscard]] Context* current_or_null() const;
  void set_current(Context* context);
  void drop_context(Context& context);
  // Where the compute mode is exclusive: throws if another process has a context on the GPU.
  void claim(Context& context);
  // GPUs have NVLink multicast: those of compute capability 9.0 or later, unless the settings say no.
  [[nodiscard]] bool has_multicast() const { return settings_.multicast && settings_.capability >= 90; }
  // GPUs that were given access to all memory of this one.
  [[nodiscard]] std::uint64_t peers_into(std::uint32_t gpu) const;

  // Work that a call waits for as the real driver does.
  void wait_for_kernels(const char* call, const Context* context);
  void wait_for_all(const char* call, const Context* context);
  void wait_before_mapping(const char* call);                           // where the settings ask for it
  void wait_for_team(const char* call, const MulticastObject& object);  // until all of its GPUs were added

  // NULL is the legacy stream of the current context.
  [[nodiscard]] Stream& stream_of(cuda::Stream handle);
  [[nodiscard]] std::vector<Stream*> streams_of(const Context& context) const;
  Stream& add_stream(unsigned flags, int priority);
  void remove_stream(cuda::Stream handle);
  // Issues work, or adds it to the graph that the stream is captured into.
  Done issue(Stream& stream, Task task, std::vector<Done> after = {});

  Event& add_event();
  [[nodiscard]] Event& event_of(cuda::Event handle);
  void remove_event(cuda::Event handle);

  // Captures: capture.cc.
  void begin_capture(Stream& stream, cuda::CaptureMode mode);
  std::shared_ptr<Graph> end_capture(Stream& stream);
  void check_capture(Stream& stream);
  // A stream that is being captured and that the legacy stream would wait for; null for all other streams.
  [[nodiscard]] Stream* captured_before(const Stream& stream) const;
  // Fails, and ends with that what is being captured into a graph.
  void refuse_in_capture(Stream& stream, const char* why);
  void check_unsafe_call(const std::string& name);
  void record(Event& event, Stream& stream);
  void wait_for_event(Stream& stream, Event& event);
  void check_event(const Event& event);
  Done launch_graph(Stream& stream, const std::shared_ptr<const Graph>& graph);

  std::map<const void*, std::unique_ptr<Module>> modules;
  std::map<const void*, std::unique_ptr<Kernel>> kernels;
  std::map<const void*, std::shared_ptr<Graph>> graphs;
  std::map<const void*, std::unique_ptr<GraphExec>> graph_execs;
  std::map<cuda::MemoryHandle, std::pair<std::shared_ptr<PhysicalMemory>, int>> handles;  // with the number of references
  cuda::MemoryHandle next_handle = 1;
  std::function<void()> on_flush{};  // what other devices have written becomes visible

 private:
  Settings settings_;
  Machine machine_;
  MemoryTable memory_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::map<const void*, std::unique_ptr<Stream>> streams_;
  std::map<const void*, std::unique_ptr<Event>> events_;
  std::vector<std::shared_ptr<Capture>> captures_;
  std::map<std::string, std::uint64_t> calls_;
  std::uint64_t next_capture_ = 1;
  std::uint32_t next_queue_ = 1;  // the legacy stream has the first
  std::uint64_t generation_;
  bool initialised_ = false;
  Scheduler scheduler_;  // last: its threads use the rest
};

// The mode of the calling thread, which cuThreadExchangeStreamCaptureMode exchanges.
[[nodiscard]] cuda::CaptureMode& capture_mode_of_thread();

// Makes one call of the driver: takes the lock, checks what may be done, and turns what is thrown into the result.
cuda::DriverCode enter(const std::string& name, unsigned rules, const std::function<void(StandIn&)>& body);

// For tests, which find them by cuGetProcAddress as softwareGpuStart, softwareGpuStop, softwareGpuInject, softwareGpuWritten,
// softwareGpuLaunched and softwareGpuCalls.
// A start reads the settings again; it and the stop end all kernels and drop all memory. `errors` is in the form of
// SOFTWARE_GPU_ERRORS.
void start_again();
void stop();
void inject(const char* errors);
std::uint64_t written();                   // MemoryTable::written()
std::uint64_t launched();                  // kernels that have begun, on all GPUs; those of graphs, too
std::uint64_t calls_of(const char* name);  // since the last start or inject()
// softwareGpuOnFlush: cuFlushGPUDirectRDMAWrites calls it, until the next start. Null: nothing.
void set_on_flush(void (*call)(void*), void* argument);

}  // namespace seto::software_gpu::driver

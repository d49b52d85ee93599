#include "tests/software_gpu/driver/stand_in.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/multicast_object.h"

namespace seto::software_gpu::driver {
namespace {

std::uint64_t new_generation() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// The current context of a thread, valid in one generation of the stand-in.
struct ThreadState {
  Context* current = nullptr;
  std::uint64_t generation = 0;
};
thread_local ThreadState this_thread;

MachineSettings machine_settings(const Settings& settings) {
  MachineSettings machine;
  machine.gpus = std::max(settings.gpus, 1U);
  machine.multiprocessors = settings.multiprocessors;
  machine.weak = settings.weak;
  machine.detect_global_races = settings.global_races;
  machine.seed = settings.seed;
  machine.step_budget = settings.step_budget;
  return machine;
}

struct Process {
  TurnMutex mutex;
  std::unique_ptr<StandIn> stand_in;
  pid_t pid = getpid();  // that of the process which started it
  bool ended = false;    // main has returned
};

// It is never destroyed, because other static objects of the program may still call the driver.
Process*& process() {
  static Process* all = new Process();
  return all;
}

// Ends the threads when the process exits. The state stays, because threads of the program may be waiting in it.
struct AtExit {
  ~AtExit() {
    Process& all = *process();
    if (all.pid != getpid()) return;
    if (all.stand_in != nullptr) all.stand_in->scheduler().end_threads();
    const std::lock_guard lock(all.mutex);
    all.ended = true;
  }
} at_exit;

}  // namespace

StandIn::StandIn(TurnMutex& mutex, const Settings& settings)
    : settings_(settings),
      machine_(machine_settings(settings)),
      memory_(settings_, machine_.addresses()),
      generation_(new_generation()),
      scheduler_(machine_, mutex, settings.wait_seconds) {
  for (std::uint32_t gpu = 0; gpu < settings_.gpus; ++gpu) {
    Context& context = *contexts_.emplace_back(std::make_unique<Context>());
    context.gpu = gpu;
    context.legacy.context = &context;
  }
}

StandIn::~StandIn() = default;

void StandIn::before_call(const std::string& name, unsigned rules) {
  const std::uint64_t number = ++calls_[name];
  const auto [begin, end] = settings_.errors.equal_range(name);
  for (auto at = begin; at != end; ++at)
    if (number >= at->second.first && number <= at->second.last)
      throw DriverError(at->second.code, "SOFTWARE_GPU_ERRORS makes call " + std::to_string(number) + " fail");
  if (const auto delay = settings_.delays.find(name); delay != settings_.delays.end())
    scheduler_.pause(std::chrono::milliseconds(delay->second));
  if ((rules & kAnywhere) != 0) return;
  if (in_host_function()) throw DriverError(DriverCode::not_permitted, name + " was called in a host function of a stream");
  if (!initialised_) throw DriverError(DriverCode::not_initialized);
  const Context* const context = current_or_null();
  if (context != nullptr && context->failed) throw DriverError(*context->failed);
  if ((rules & kUnsafeInCapture) != 0) check_unsafe_call(name);
}

void StandIn::inject(const std::string& errors) {
  settings_.errors = parse_errors(errors);
  calls_.clear();
}

std::uint64_t StandIn::calls_of(const std::string& name) const {
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

std::uint32_t StandIn::gpu_of(cuda::DeviceNumber device) const {
  if (device < 0 || static_cast<std::uint32_t>(device) >= settings_.gpus) throw DriverError(DriverCode::invalid_device);
  return static_cast<std::uint32_t>(device);
}

Context& StandIn::context_of(cuda::Context handle) {
  for (const auto& context : contexts_)
    if (reinterpret_cast<cuda::Context>(context.get()) == handle && context->references > 0) return *context;
  throw DriverError(DriverCode::invalid_context);
}

Context* StandIn::current_or_null() const {
  if (this_thread.generation != generation_ || this_thread.current == nullptr) return nullptr;
  return this_thread.current->references > 0 ? this_thread.current : nullptr;
}

Context& StandIn::current() {
  Context* const context = current_or_null();
  if (context == nullptr) throw DriverError(DriverCode::invalid_context);
  return *context;
}

void StandIn::set_current(Context* context) { this_thread = {context, generation_}; }

// A context that nothing retains any more loses its failure and its streams; memory stays until the stand-in ends.
void StandIn::drop_context(Context& context) {
  std::erase_if(streams_, [&](const auto& each) { return each.second->context == &context; });
  std::erase_if(events_, [&](const auto& each) { return each.second->context == &context; });
  context.per_thread.clear();
  context.queues.clear();
  context.failed.reset();
  context.peers = 0;
  context.claim.reset();
  context.legacy = {};
  context.legacy.context = &context;
}

void StandIn::claim(Context& context) {
  if (!settings_.exclusive_folder.empty()) context.claim = std::make_unique<GpuClaim>(settings_.exclusive_folder, context.gpu);
}

std::uint64_t StandIn::peers_into(std::uint32_t gpu) const {
  std::uint64_t bits = 0;
  for (const auto& context : contexts_) bits |= ((context->peers >> gpu) & 1) << context->gpu;
  return bits;
}

void StandIn::wait_for_kernels(const char* call, const Context* context) {
  scheduler_.wait_for(call, scheduler_.issued(context, true));
}

void StandIn::wait_for_all(const char* call, const Context* context) {
  scheduler_.wait_for(call, scheduler_.issued(context, false));
}

// Another process may add a GPU, which nothing tells.
void StandIn::wait_for_team(const char* call, const MulticastObject& object) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(settings_.wait_seconds);
  while (!object.is_complete()) {
    if (std::chrono::steady_clock::now() > until)
      throw DriverError(DriverCode::timeout, std::string(call) + " waits until all GPUs of a multicast object were added");
    scheduler_.pause(std::chrono::milliseconds(1));
  }
}

void StandIn::wait_before_mapping(const char* call) {
  if (settings_.mapping_waits) wait_for_all(call, nullptr);
}

Stream& StandIn::stream_of(cuda::Stream handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 0 || number == cuda::kLegacyStream) return current().legacy;
  if (number == cuda::kPerThreadStream) {
    thread_local std::size_t index = [] {
      static std::atomic<std::size_t> threads{0};
      return threads++;
    }();
    auto& streams = current().per_thread;
    while (streams.size() <= index) {
      streams.push_back(std::make_unique<Stream>());
      streams.back()->context = &current();
    }
    return *streams[index];
  }
  const auto found = streams_.find(handle);
  if (found == streams_.end()) throw DriverError(DriverCode::invalid_handle, "there is no such stream");
  if (found->second->context != &current()) throw DriverError(DriverCode::invalid_handle, "the stream is of another context");
  return *found->second;
}

std::vector<Stream*> StandIn::streams_of(const Context& context) const {
  std::vector<Stream*> found;
  for (const auto& [handle, stream] : streams_)
    if (stream->context == &context) found.push_back(stream.get());
  for (const auto& stream : context.per_thread) found.push_back(stream.get());
  return found;
}

Stream& StandIn::add_stream(unsigned flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->context = &current();
  stream->flags = flags;
  stream->priority = priority;
  stream->queue = next_queue_++ % settings_.queues;
  Stream& added = *stream;
  streams_[&added] = std::move(stream);
  return added;
}

// Work that was issued goes on, because operations hold what they need.
void StandIn::remove_stream(cuda::Stream handle) {
  Stream& stream = stream_of(handle);
  if (streams_.count(&stream) == 0) throw DriverError(DriverCode::invalid_handle, "this stream cannot be destroyed");
  if (stream.capture != nullptr) {
    stream.capture->invalid = true;
    stream.capture->members.erase(&stream);
    if (stream.capture->origin == &stream) stream.capture->origin = nullptr;
  }
  streams_.erase(&stream);
}

Event& StandIn::add_event() {
  auto event = std::make_unique<Event>();
  event->context = &current();
  Event& added = *event;
  events_[&added] = std::move(event);
  return added;
}

Event& StandIn::event_of(cuda::Event handle) {
  const auto found = events_.find(handle);
  if (found == events_.end()) throw DriverError(DriverCode::invalid_handle, "there is no such event");
  return *found->second;
}

void StandIn::remove_event(cuda::Event handle) { events_.erase(&event_of(handle)); }

cuda::DriverCode enter(const std::string& name, unsigned rules, const std::function<void(StandIn&)>& body) {
  Process& all = *process();
  // A forked child has none of the threads, and perhaps a lock that none of its threads holds.
  if (all.pid != getpid()) {
    explain_error(DriverCode::not_initialized, "CUDA was used before this process was forked");
    return DriverCode::not_initialized;
  }
  const std::lock_guard lock(all.mutex);
  DriverCode code = DriverCode::success;
  std::string text;
  try {
    if (all.ended) throw DriverError(DriverCode::deinitialized);
    if (all.stand_in == nullptr) all.stand_in = std::make_unique<StandIn>(all.mutex, Settings::of_environment());
    all.stand_in->before_call(name, rules);
    body(*all.stand_in);
    return DriverCode::success;
  } catch (const DriverError& error) {
    code = error.code();
    text = error.what();
  } catch (const Fault& fault) {
    code = code_of(fault.kind());
    text = fault.what();
  } catch (const std::bad_alloc&) {
    code = DriverCode::out_of_memory;
  }
  if (code != DriverCode::not_ready) explain_error(code, text);
  return code;
}

void stop() {
  if (process()->pid == getpid())
    process()->stand_in.reset();
  else
    process() = new Process();  // what the child has of the old one cannot be used
}

void start_again() {
  stop();
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  all.stand_in = std::make_unique<StandIn>(all.mutex, Settings::of_environment());
}

void inject(const char* errors) {
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  if (all.stand_in != nullptr) all.stand_in->inject(errors);
}

std::uint64_t calls_of(const char* name) {
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  return all.stand_in == nullptr ? 0 : all.stand_in->calls_of(name);
}

void set_on_flush(void (*call)(void*), void* argument) {
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  if (all.stand_in == nullptr) return;
  all.stand_in->on_flush = nullptr;
  if (call != nullptr) all.stand_in->on_flush = [call, argument] { call(argument); };
}

std::uint64_t written() {
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  return all.stand_in == nullptr ? 0 : all.stand_in->memory().written();
}

std::uint64_t launched() {
  Process& all = *process();
  const std::lock_guard lock(all.mutex);
  return all.stand_in == nullptr ? 0 : all.stand_in->machine().launched();
}

}  // namespace seto::software_gpu::driver

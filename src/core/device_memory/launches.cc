#include "src/core/device_memory/launches.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "src/core/device_memory/launch_watcher.h"

namespace seto {
namespace {

using cuda::DriverCode;

constexpr std::chrono::microseconds kShortly(200);
// For a pass that has begun on another GPU. One of the longest slice takes some 10 ms on PCI Express.
constexpr std::uint64_t kPassMs = 200;

}  // namespace

LaunchGate& LaunchGate::of_process() {
  static auto* const only = new LaunchGate;  // never destroyed, so that late launches find it
  return *only;
}

void LaunchGate::pass() {
  std::unique_lock lock(mutex_);
  ++came_;  // before the wait, so that the gate is not closed again at once
  opened_.wait_for(lock, std::chrono::milliseconds(kLongestMs), [this] { return closed_ == 0; });
}

std::uint64_t LaunchGate::came() const {
  const std::lock_guard lock(mutex_);
  return came_;
}

LaunchGate::Closed::Closed(std::uint64_t came) {
  LaunchGate& gate = of_process();
  const std::lock_guard lock(gate.mutex_);
  holds_ = gate.came_ == came && gate.unwatched_ == 0;
  if (holds_) ++gate.closed_;
}

LaunchGate::Closed::~Closed() {
  if (!holds_) return;
  LaunchGate& gate = of_process();
  const std::lock_guard lock(gate.mutex_);
  if (--gate.closed_ == 0) gate.opened_.notify_all();
}

LaunchGate::Unwatched::Unwatched() {
  LaunchGate& gate = of_process();
  std::unique_lock lock(gate.mutex_);
  ++gate.unwatched_;
  gate.opened_.wait_for(lock, std::chrono::milliseconds(kLongestMs), [&] { return gate.closed_ == 0; });
}

LaunchGate::Unwatched::~Unwatched() {
  {
    LaunchGate& gate = of_process();
    const std::lock_guard lock(gate.mutex_);
    --gate.unwatched_;
  }
  LaunchWatcher::of_process().wake();  // what waited for the end of this work
}

Result<std::unique_ptr<Launches>> Launches::create(const GpuContext& gpu, OperationOrder& order, std::uint32_t most_blocks) {
  std::unique_ptr<Launches> made(new Launches(gpu, order));
  made->most_blocks_ = most_blocks;
  void* words = nullptr;
  const std::size_t count = most_blocks + 1;
  SETO_TRY(
      made->driver_.mem_host_alloc(&words, count * sizeof(std::uint64_t), cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap));
  made->words_ = static_cast<std::uint64_t*>(words);
  std::fill_n(made->words_, count, 0U);
  cuda::DevicePointer there = 0;
  SETO_TRY(made->driver_.mem_host_get_device_pointer(&there, words, 0));
  made->words_there_ = there;
  return made;
}

Launches::~Launches() {
  for (const cuda::Event event : all_events_) static_cast<void>(driver_.event_destroy.code(event));
  if (words_ != nullptr) static_cast<void>(driver_.mem_free_host.code(words_));
}

Result<std::uint64_t> Launches::capture_of(cuda::Stream stream) const {
  cuda::CaptureStatus status = cuda::CaptureStatus::none;
  std::uint64_t id = 0;
  SETO_TRY(driver_.stream_get_capture_info(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
  if (status == cuda::CaptureStatus::none) return std::uint64_t{0};
  if (status == cuda::CaptureStatus::active) return id;
  return failure(Code::invalid_usage, "stream: its capture was invalidated by an earlier error: end the capture and begin again");
}

Result<cuda::Event> Launches::take_event() {
  const std::lock_guard lock(mutex_);
  if (!free_events_.empty()) {
    const cuda::Event event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  cuda::Event event = nullptr;
  SETO_TRY(driver_.event_create(&event, cuda::kEventDisableTiming));
  all_events_.push_back(event);
  return event;
}

Status Launches::copy_program(const Request& request) {
  const DeviceShape& shape = *request.shape;
  return driver_.memcpy_htod_async(shape.program, reinterpret_cast<const void*>(shape.staged), shape.staged_size, request.stream);
}

Status Launches::launch_kernel(const Request& request, std::uint64_t launch) {
  const DeviceShape& shape = *request.shape;
  kernels::TransferArguments transfers = request.transfers;
  transfers.program = shape.program;
  transfers.stop = words_there_;
  transfers.launch = launch;
  kernels::DeviceArguments arguments = request.arguments;
  arguments.program = shape.program;
  arguments.scalar = shape.scalar;
  arguments.stop = words_there_;
  arguments.reports = words_there_ + sizeof(std::uint64_t);
  if (request.announcement != nullptr) SETO_TRY(driver_.launch_host_func(request.stream, Relay::run, request.announcement));
  void* values[] = {&arguments};
  if (shape.transfers != nullptr) values[0] = &transfers;
  SETO_TRY(copy_buffers(request.before, request.stream));
  SETO_TRY(driver_.launch_kernel(shape.kernel, shape.blocks, 1, 1, shape.threads, 1, 1, 0, request.stream, values, nullptr));
  return copy_buffers(request.after, request.stream);
}

Status Launches::copy_buffers(const std::vector<BufferCopy>& copies, cuda::Stream stream) {
  for (const BufferCopy& copy : copies) SETO_TRY(driver_.memcpy_dtod_async(copy.to, copy.from, copy.size, stream));
  return {};
}

// Events of a capture say nothing about when its graph runs, so such a launch is not watched.
Status Launches::launch_captured(const Request& request, std::uint64_t capture) {
  if (last_captured_ == nullptr) {
    SETO_ASSIGN(last_captured_, take_event());
  }
  if (capture == capture_ && last_captured_stream_ != request.stream)
    SETO_TRY(driver_.stream_wait_event(request.stream, last_captured_, 0));
  SETO_TRY(join(request, last_captured_));
  request.shape->is_captured = true;
  has_graphs_.store(true, std::memory_order_relaxed);
  LaunchGate::of_process().pass();
  SETO_TRY(copy_program(request));  // nothing orders the graph after an earlier copy
  SETO_TRY(launch_kernel(request, 0));
  SETO_TRY(driver_.event_record(last_captured_, request.stream));
  SETO_TRY(join_back(request, last_captured_));
  LaunchWatcher::of_process().wake();
  capture_ = capture;
  last_captured_stream_ = request.stream;
  return {};
}

Status Launches::launch(const Request& request, std::uint64_t capture) {
  if (capture != 0) return launch_captured(request, capture);
  if (last_ != nullptr && last_stream_ != request.stream) SETO_TRY(driver_.stream_wait_event(request.stream, last_, 0));
  SETO_ASSIGN(const cuda::Event begin, take_event());
  SETO_ASSIGN(const cuda::Event end, take_event());
  request.shape->last_launch = launched_ + 1;
  {
    const std::lock_guard lock(mutex_);
    running_.push_back({begin,
                        end,
                        request.shape,
                        request.note,
                        request.limit,
                        {},
                        request.record,
                        launched_ + 1,
                        request.transfers.exchange,
                        request.announced,
                        request.residuals});
  }
  LaunchWatcher::of_process().wake();
  LaunchGate::of_process().pass();
  Status launched = join(request, end);
  if (launched.ok()) launched = launch_between(request, begin, end);
  if (launched.ok()) launched = join_back(request, end);
  const std::lock_guard lock(mutex_);
  if (!launched.ok()) {
    running_.pop_back();
    return launched;
  }
  running_.back().is_issued = true;
  ++launched_;
  last_ = end;
  last_stream_ = request.stream;
  return {};
}

Status Launches::launch_unwatched(const Request& request) {
  if (!std::exchange(request.shape->is_copied, true)) SETO_TRY(copy_program(request));
  return launch_kernel(request, 0);
}

// An event may be recorded again once a stream waits for it.
Status Launches::join(const Request& request, cuda::Event event) {
  for (const cuda::Stream joined : request.joined) {
    SETO_TRY(driver_.event_record(event, joined));
    SETO_TRY(driver_.stream_wait_event(request.stream, event, 0));
  }
  return {};
}

Status Launches::join_back(const Request& request, cuda::Event event) {
  for (const cuda::Stream joined : request.joined) SETO_TRY(driver_.stream_wait_event(joined, event, 0));
  return {};
}

// A launch may block until the kernel has ended (CUDA_LAUNCH_BLOCKING). So the watcher knows of it before.
Status Launches::launch_between(const Request& request, cuda::Event begin, cuda::Event end) {
  SETO_TRY(driver_.event_record(begin, request.stream));
  if (!std::exchange(request.shape->is_copied, true)) SETO_TRY(copy_program(request));
  SETO_TRY(launch_kernel(request, launched_ + 1));
  if (request.residuals != nullptr) SETO_TRY(request.residuals->after_launch(request.stream));
  return driver_.event_record(end, request.stream);
}

// The work before a kernel in its stream takes its own time, so the deadline of the call begins with the kernel.
void Launches::begin(Launch& launch) {
  if (launch.until) return;
  launch.until = Deadline::after_ms(launch.limit.ms());
  launch.record.begin(true);
  if (!launch.is_relayed() && launch.note.operation != 0) order_.begin(launch.note);
}

void Launches::end_first(const Status& outcome, bool failed) {
  Launch& first = running_.front();
  begin(first);
  if (!failed && !first.is_relayed() && first.note.operation != 0) order_.complete(first.note.operation);
  first.record.end(outcome, failed, true);
  free_events_.push_back(first.begin);
  free_events_.push_back(first.end);
  ended_ = first.launch;
  if (first.note.operation != 0) unread_ = first.note;
  running_.pop_front();
  changed_.notify_all();
}

void Launches::Launch::take_number() {
  if (announced == nullptr || note.operation != 0) return;
  note.operation = announced->number.load(std::memory_order_acquire);
  if (note.operation != 0) note.digest = announced->digest;
}

Launches::State Launches::poll(const Status& outcome) {
  const std::lock_guard lock(mutex_);
  State state;
  while (!running_.empty()) {
    Launch& first = running_.front();
    first.take_number();
    state.note = first.note;
    state.limit = first.limit;
    state.launch = first.launch;
    state.exchange = first.exchange;
    const DriverCode code = first.is_issued ? driver_.event_query.code(first.end) : DriverCode::not_ready;
    state.kernel_has_ended = code == DriverCode::success;
    if (state.kernel_has_ended &&
        (!first.is_relayed() || (first.note.operation != 0 && relay_->has_ended(first.note.operation)))) {
      if (outcome.ok() && has_refused())
        end_first({Code::remote_error, "a message was refused"}, true);
      else
        end_first(outcome, !outcome.ok());
      continue;
    }
    state.shape = first.shape;
    if (code != DriverCode::not_ready && code != DriverCode::success) {
      state.failure = driver_.event_query.failed(code);
      end_first(state.failure, true);
      return state;
    }
    const bool is_numbered = !first.is_relayed() || first.note.operation != 0;
    if (!first.until && is_numbered && driver_.event_query.code(first.begin) == DriverCode::success) begin(first);
    state.has_begun = first.until.has_value();
    if (state.has_begun && first.record.wanted(false)) first.record.tell({-1, "runs on its GPU", first.shape->plan});
    state.is_overdue = state.has_begun && first.until->passed();
    return state;
  }
  state.note = std::exchange(unread_, {});
  return state;
}

void Launches::await_change() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kShortly);
}

std::size_t Launches::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

std::uint64_t Launches::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Launches::stop() {
  const std::lock_guard lock(mutex_);
  if (!passes_end_) passes_end_ = Deadline::after_ms(kPassMs);
  const std::uint32_t bits = kernels::kStop | (passes_end_->passed() ? kernels::kStopAtOnce : 0U);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_)).fetch_or(bits, std::memory_order_relaxed);
}

bool Launches::has_refused() const {
  const std::uint32_t bits = std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_)).load(std::memory_order_acquire);
  return (bits & kernels::kStopRefused) != 0;
}

std::optional<kernels::StopReport> Launches::stopped_at() const {
  for (std::uint32_t block = 0; block < most_blocks_; ++block) {
    const std::uint64_t word = std::atomic_ref(words_[1 + block]).load(std::memory_order_relaxed);
    if (word != 0) return kernels::stop_report_of(word);
  }
  return {};
}

}  // namespace seto

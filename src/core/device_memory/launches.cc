#include "src/core/device_memory/launches.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "src/core/device_memory/launch_gate.h"
#include "src/core/device_memory/launch_watcher.h"

namespace seto {
namespace {

using cuda::DriverCode;

// For a pass that has begun on another GPU. One of the longest slice takes some 10 ms on PCI Express.
constexpr std::uint64_t kPassMs = 200;

constexpr std::chrono::microseconds kShortly(200);

// Places in the words that kernels and the host share.
constexpr std::size_t kStopWord = 0, kProgressWord = 1, kReplayWord = 2, kReportWords = 3;

// A relay gives each launch its number in its stream, a kernel of multicast takes one program, and copies lie around one kernel.
bool is_alone(const Launches::Request& request) {
  return request.shape->relayed != nullptr || request.shape->is_multicast || !request.before.empty() || !request.after.empty();
}

Replays::Captured captured_of(std::span<const Launches::Request> requests) {
  Replays::Captured captured;
  captured.exchange = requests.front().transfers.exchange;
  for (const Launches::Request& request : requests) {
    captured.shapes.push_back(request.shape);
    captured.limits.push_back(request.limit);
  }
  return captured;
}

}  // namespace

Result<std::unique_ptr<Launches>> Launches::create(const GpuContext& gpu, OperationOrder& order, std::uint32_t most_blocks,
                                                   LaunchOrder* among, const LaunchOrder::Member* member) {
  std::unique_ptr<Launches> made(new Launches(gpu, order));
  made->most_blocks_ = most_blocks;
  void* words = nullptr;
  const std::size_t count = kReportWords + std::size_t{most_blocks} * kernels::kMostPrograms;
  SETO_TRY(
      made->driver_.mem_host_alloc(&words, count * sizeof(std::uint64_t), cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap));
  made->words_ = static_cast<std::uint64_t*>(words);
  std::fill_n(made->words_, count, 0U);
  cuda::DevicePointer there = 0;
  SETO_TRY(made->driver_.mem_host_get_device_pointer(&there, words, 0));
  made->words_there_ = there;
  made->replays_ = std::make_unique<Replays>(made->driver_, reinterpret_cast<std::uint32_t*>(made->words_ + kReplayWord),
                                             there + kReplayWord * sizeof(std::uint64_t));
  made->pending_.reserve(kernels::kMostPrograms);
  SETO_ASSIGN(made->begun_, made->take_event());
  made->among_ = among;
  made->member_ = member;
  return made;
}

Launches::~Launches() {
  leave_order();
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
  all_events_.reserve(all_events_.size() + 1);
  free_events_.reserve(all_events_.size() + 1);  // the watcher, which fills it, needs no memory
  cuda::Event event = nullptr;
  SETO_TRY(driver_.event_create(&event, cuda::kEventDisableTiming));
  all_events_.push_back(event);
  return event;
}

Status Launches::copy_program(const Request& request) {
  const DeviceShape& shape = *request.shape;
  return driver_.memcpy_htod_async(shape.program, reinterpret_cast<const void*>(shape.staged), shape.staged_size, request.stream);
}

kernels::LaunchArguments Launches::arguments_of(std::span<const Request> requests, std::uint64_t launch) const {
  kernels::LaunchArguments arguments;
  arguments.count = static_cast<std::uint32_t>(requests.size());
  arguments.number = launch;
  arguments.progress = words_there_ + kProgressWord * sizeof(std::uint64_t);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const DeviceShape& shape = *requests[i].shape;
    arguments.blocks = std::max(arguments.blocks, shape.blocks);
    kernels::DeviceArguments& program = arguments.programs[i];
    program = requests[i].arguments;
    program.program = shape.program;
    program.scalar = shape.scalar;
    program.stop = words_there_ + kStopWord * sizeof(std::uint64_t);
    program.reports = words_there_ + (kReportWords + i * most_blocks_) * sizeof(std::uint64_t);
  }
  return arguments;
}

Status Launches::launch_kernel(std::span<Request> requests, std::uint64_t launch, cuda::Event begun) {
  Request& first = requests.front();
  const DeviceShape& shape = *first.shape;
  kernels::TransferArguments transfers = first.transfers;
  transfers.program = shape.program;
  transfers.stop = words_there_ + kStopWord * sizeof(std::uint64_t);
  transfers.launch = launch;
  kernels::LaunchArguments arguments = arguments_of(requests, launch);
  std::uint32_t threads = shape.threads;
  for (const Request& request : requests) threads = std::max(threads, request.shape->threads);
  if (first.announcement != nullptr) {
    SETO_TRY(driver_.launch_host_func(first.stream, Relay::run, first.announcement.get()));
    (void)first.announcement.release();
  }
  MessageRelay::Replay* const replay = first.messages.replay.get();
  if (replay != nullptr) {
    SETO_TRY(driver_.launch_host_func(first.stream, MessageRelay::run_before, replay));
    (void)first.messages.replay.release();
  }
  void* values[] = {&arguments};
  if (shape.transfers != nullptr) values[0] = &transfers;
  SETO_TRY(copy_buffers(first.before, first.stream));
  const cuda::LaunchAttribute when_begun{.event = begun};
  const cuda::LaunchConfiguration configuration{.grid_x = arguments.blocks,
                                                .block_x = threads,
                                                .stream = first.stream,
                                                .attributes = &when_begun,
                                                .attribute_count = begun == nullptr ? 0U : 1U};
  SETO_TRY(driver_.launch_kernel_ex(&configuration, shape.kernel, values, nullptr));
  if (replay != nullptr) SETO_TRY(driver_.launch_host_func(first.stream, MessageRelay::run_after, replay));
  return copy_buffers(first.after, first.stream);
}

Status Launches::copy_buffers(const std::vector<BufferCopy>& copies, cuda::Stream stream) {
  for (const BufferCopy& copy : copies) SETO_TRY(driver_.memcpy_dtod_async(copy.to, copy.from, copy.size, stream));
  return {};
}

// Events of a capture say nothing about when its graph runs.
Status Launches::launch_captured(std::span<Request> requests, std::uint64_t capture) {
  const Request& first = requests.front();
  if (last_captured_ == nullptr) {
    SETO_ASSIGN(last_captured_, take_event());
  }
  if (capture == capture_ && last_captured_stream_ != first.stream)
    SETO_TRY(driver_.stream_wait_event(first.stream, last_captured_, 0));
  SETO_TRY(join(first, last_captured_));
  has_graphs_.store(true, std::memory_order_relaxed);
  LaunchGate::of_process().pass();
  for (const Request& request : requests) {
    request.shape->is_captured = true;
    SETO_TRY(copy_program(request));  // nothing orders the graph after an earlier copy
  }
  const bool is_judged = first.shape->relayed != nullptr || first.messages.replay != nullptr;  // by tasks of the relay
  if (!is_judged) SETO_TRY(replays_->mark_begin(captured_of(requests), first.stream));
  SETO_TRY(launch_kernel(requests, 0, nullptr));
  if (!is_judged) SETO_TRY(replays_->mark_end(first.stream));
  SETO_TRY(driver_.event_record(last_captured_, first.stream));
  SETO_TRY(join_back(first, last_captured_));
  LaunchWatcher::of_process().wake();
  capture_ = capture;
  last_captured_stream_ = first.stream;
  return {};
}

Status Launches::make_room(const DeviceShape& shape, cuda::Stream stream, std::uint64_t capture) {
  if (pending_.empty()) return {};
  const Request& last = pending_.back();
  if (last.stream == stream && pending_capture_ == capture && last.shape->kernel == shape.kernel && shape.relayed == nullptr &&
      pending_.size() < kernels::kMostPrograms)
    return {};
  return flush();
}

// Until its launch, a shape must not be replaced by that of a later request.
Status Launches::add(Request request, std::uint64_t capture) {
  request.shape->last_launch = launched_ + 1;
  request.shape->is_captured = request.shape->is_captured || capture != 0;
  const bool alone = is_alone(request);
  if (alone) SETO_TRY(flush());
  pending_capture_ = capture;
  pending_.push_back(std::move(request));
  return alone ? flush() : Status();
}

Status Launches::flush() {
  if (pending_.empty()) return {};
  Status launched = launch(pending_, pending_capture_);
  pending_.clear();  // after an exception, drop() does that
  return launched;
}

void Launches::drop(const Status& reason) {
  for (Request& request : pending_)
    if (pending_capture_ == 0 && !reason.ok()) request.record.end(reason, true, true);
  pending_.clear();
}

void Launches::note_running(std::span<const Request> requests, cuda::Event begin, cuda::Event end) {
  const std::lock_guard lock(mutex_);
  for (const Request& request : requests) {
    request.shape->last_launch = launched_ + 1;
    Launch& launch = running_.emplace_back();
    launch.begin = begin;
    launch.end = end;
    launch.shape = request.shape;
    launch.note = request.note;
    launch.limit = request.limit;
    launch.record = request.record;
    launch.launch = launched_ + 1;
    launch.exchange = request.transfers.exchange;
    launch.announced = request.announced;
    launch.residuals = request.residuals;
    launch.messages = request.messages.use;
    launch.program = static_cast<std::uint32_t>(&request - requests.data());
    launch.is_last = &request == &requests.back();
  }
}

Status Launches::launch(std::span<Request> requests, std::uint64_t capture) {
  Status launched;
  try {
    launched = capture != 0 ? launch_captured(requests, capture) : launch_watched(requests);
  } catch (const std::bad_alloc&) {
    if (capture == 0) forget_last();
    throw;
  }
  if (launched.ok()) return {};
  if (capture == 0) {
    forget_last();
    for (const Request& request : requests) RecorderEntry(request.record).end(launched, true, true);
  }
  const std::size_t others = requests.size() - 1;
  return failure(launched.code(), "%s%s: %s", requests.front().shape->what.c_str(),
                 others == 0 ? "" : (" and the " + std::to_string(others) + " calls after it in its launch").c_str(),
                 std::string(launched.text()).c_str());
}

Status Launches::launch_watched(std::span<Request> requests) {
  const Request& first = requests.front();
  if (last_ != nullptr && last_stream_ != first.stream) SETO_TRY(driver_.stream_wait_event(first.stream, last_, 0));
  SETO_ASSIGN(const cuda::Event begin, take_event());
  SETO_ASSIGN(const cuda::Event end, take_event());
  note_running(requests, begin, end);
  LaunchWatcher::of_process().wake();
  LaunchGate::of_process().pass();
  SETO_TRY(join(first, end));
  SETO_TRY(in_turn(first, [&](cuda::Event begun) { return launch_between(requests, begin, end, begun); }));
  SETO_TRY(join_back(first, end));
  const std::lock_guard lock(mutex_);
  for (Launch& one : running_) one.is_issued = true;
  ++launched_;
  last_ = end;
  last_stream_ = first.stream;
  return {};
}

// Nothing tells whether its kernel runs, so it must be stopped.
void Launches::forget_last() {
  const std::lock_guard lock(mutex_);
  while (!running_.empty() && running_.back().launch == launched_ + 1) running_.pop_back();
  has_unwatched_.store(true, std::memory_order_release);
}

Status Launches::launch_unwatched(Request& request) {
  if (!std::exchange(request.shape->is_copied, true)) SETO_TRY(copy_program(request));
  return in_turn(request, [&](cuda::Event begun) { return launch_kernel({&request, 1}, 0, begun); });
}

Status Launches::in_turn(const Request& first, const std::function<Status(cuda::Event begun)>& body) {
  if (among_ == nullptr || first.shape->transfers != nullptr) return body(nullptr);
  if (const cuda::Event before = among_->before(*member_); before != nullptr)
    SETO_TRY(driver_.stream_wait_event(first.stream, before, 0));
  SETO_TRY(body(begun_));
  among_->launched(*member_, begun_);
  return {};
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
Status Launches::launch_between(std::span<Request> requests, cuda::Event begin, cuda::Event end, cuda::Event begun) {
  const cuda::Stream stream = requests.front().stream;
  SETO_TRY(driver_.event_record(begin, stream));
  for (const Request& request : requests)
    if (!std::exchange(request.shape->is_copied, true)) SETO_TRY(copy_program(request));
  SETO_TRY(launch_kernel(requests, launched_ + 1, begun));
  for (const Request& request : requests)
    if (request.residuals != nullptr) SETO_TRY(request.residuals->after_launch(stream));
  return driver_.event_record(end, stream);
}

// The work before a kernel in its stream takes its own time, so the deadline of the call begins with the kernel, or with the end
// of the program before it in its launch.
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
  if (first.is_last) {  // until then the kernel runs
    free_events_.push_back(first.begin);
    free_events_.push_back(first.end);
    ended_ = first.launch;
  }
  if (first.note.operation != 0) unread_ = first.note;
  running_.pop_front();
  changed_.notify_all();
}

void Launches::Launch::take_number() {
  if (announced == nullptr || note.operation != 0) return;
  note.operation = announced->number.load(std::memory_order_acquire);
  if (note.operation != 0) note.digest = announced->digest;
}

// As far as the kernel of this launch has said.
std::uint32_t Launches::programs_done(std::uint64_t launch) const {
  const std::uint64_t word = std::atomic_ref(words_[kProgressWord]).load(std::memory_order_acquire);
  const kernels::LaunchProgress progress = kernels::launch_progress_of(word);
  return progress.launch == launch ? progress.done : 0;
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
    state.program = first.program;
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
    if (code == DriverCode::not_ready && programs_done(first.launch) > first.program) {  // its launch may still block
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

void Launches::leave_order() {
  if (among_ != nullptr) among_->leave(*member_);
  among_ = nullptr;
}

void Launches::stop() {
  const std::lock_guard lock(mutex_);
  if (!passes_end_) passes_end_ = Deadline::after_ms(kPassMs);
  const std::uint32_t bits = kernels::kStop | (passes_end_->passed() ? kernels::kStopAtOnce : 0U);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_ + kStopWord)).fetch_or(bits, std::memory_order_relaxed);
}

bool Launches::is_stopping() const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t bits =
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_ + kStopWord)).load(std::memory_order_relaxed);
  return passes_end_.has_value() && (bits & kernels::kStopAtOnce) == 0;
}

bool Launches::has_refused() const {
  const std::uint32_t bits =
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_ + kStopWord)).load(std::memory_order_acquire);
  return (bits & kernels::kStopRefused) != 0;
}

std::optional<kernels::StopReport> Launches::stopped_at(std::uint32_t program) const {
  for (std::uint32_t block = 0; block < most_blocks_; ++block) {
    const std::uint64_t word =
        std::atomic_ref(words_[kReportWords + program * most_blocks_ + block]).load(std::memory_order_relaxed);
    if (word != 0) return kernels::stop_report_of(word);
  }
  return {};
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

}  // namespace seto

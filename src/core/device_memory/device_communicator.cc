#include "src/core/device_memory/device_communicator.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/core/call/call_shape.h"
#include "src/core/call/error_feedback.h"
#include "src/core/device_memory/device_costs.h"
#include "src/core/device_memory/launch_gate.h"
#include "src/core/device_memory/lending/lent_buffers.h"
#include "src/core/device_memory/memory/buffer_check.h"
#include "src/core/gpu_direct/message_memory.h"
#include "src/core/progress/token_task.h"
#include "src/engine/kernels/device_launch.h"

namespace seto {
namespace {

constexpr std::uint64_t kLookAtPeersMs = 20;    // while a kernel runs
constexpr std::uint64_t kStopMs = 10'000;       // for kernels to end after they were stopped
constexpr std::uint64_t kAbandonedMs = 30'000;  // for ranks that may be dead to say that they are gone

static_assert(kStagedMessages >= kWorkspaceSize);  // DeviceShapes cuts for one size; messages lie behind it
}  // namespace

Result<std::unique_ptr<DeviceCommunicator>> DeviceCommunicator::create(std::shared_ptr<Communicator> control,
                                                                       Bootstrap& bootstrap, std::shared_ptr<GpuContext> gpu,
                                                                       Deadline until) {
  std::unique_ptr<DeviceCommunicator> made(new DeviceCommunicator(std::move(control), std::move(gpu)));
  SETO_TRY(made->open(bootstrap, until));
  return made;
}

Status DeviceCommunicator::open(Bootstrap& bootstrap, Deadline until) {
  SETO_ASSIGN(std::vector<RankStatement> statements, exchange(bootstrap, prepare(until), until));
  const Rank rank = control_->rank();
  const std::vector<bool> nearby = nearby_ranks(control_->tiers(), rank, control_->ranks());
  Workspaces& workspaces = *parts_->workspaces;
  SETO_TRY(workspaces.agree_on_sharing(rank, statements, nearby, bootstrap, until));
  SETO_ASSIGN(statements, exchange(bootstrap, workspaces.allocate(statements[static_cast<std::size_t>(rank)]), until));
  SETO_ASSIGN(const std::vector<std::string> findings, exchange_findings(bootstrap, map_workspaces(statements, nearby), until));
  pairs_ = workspaces.relayed_pairs(findings);
  SETO_TRY(agree(bootstrap, make_parts(statements), until));
  workspaces.join();
  if (!pairs_.any() && can_measure_device_costs(statements)) SETO_TRY(measure_costs(bootstrap, until));
  if (!pairs_.any()) parts_->shapes->allow_marks();
  SETO_TRY(agree_on_lending(statements, bootstrap, until));
  const MulticastMemory::Setup multicast{gpu_, rank, statements, is_one_host(control_->tiers()) && !pairs_.any()};
  SETO_ASSIGN(parts_->multicast, MulticastCalls::create(multicast, control_->config(), *parts_->shapes, bootstrap, until));
  transfer_watch_ = std::make_unique<TransferWatch>(*control_, *parts_->launches, *parts_->transfers, relay_.get());
  replay_watch_ = std::make_unique<ReplayWatch>(*control_, *parts_->launches, *parts_->transfers);
  stream_users_ = std::make_unique<StreamUsers>(statements[0].token, control_->rank(), gpu_->handle());
  overdue_ = std::make_unique<OverdueLaunch>(*parts_->launches);
  SETO_TRY(LaunchWatcher::of_process().add(*this));
  is_watched_ = true;
  return {};
}

Result<std::string> DeviceCommunicator::map_workspaces(const std::vector<RankStatement>& statements,
                                                       const std::vector<bool>& nearby) {
  // Without it the others find no socket, and all ranks stage their messages.
  if (!is_one_process(statements))
    static_cast<void>(MemoryImporter::of_process().start([] { LaunchWatcher::of_process().wake(); }));
  return parts_->workspaces->connect(control_->rank(), statements, nearby);
}

Status DeviceCommunicator::make_parts(const std::vector<RankStatement>& statements) {
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  SETO_ASSIGN(const std::uint32_t blocks, blocks_of(statements, control_->tiers()));
  LaunchOrder* const among = shares_gpu(statements, control_->rank()) ? nullptr : &gpu_->launch_order();
  SETO_ASSIGN(parts_->launches, Launches::create(*gpu_, control_->order(), blocks, among, this));
  if (pairs_.any()) {  // also where this rank reaches all others: operations have the same numbers on all ranks
    SETO_ASSIGN(parts_->staging, Staging::create(gpu_->driver()));
    SETO_ASSIGN(relay_, Relay::create(*control_, *parts_->staging, [] { LaunchWatcher::of_process().wake(); }));
    wanted_slots_ = gpu_slots_for_messages(gpu_->driver(), gpu_->device(), gpu_->handle(), control_->config());
    parts_->launches->follow(*relay_);
  }
  // In one process, the addresses of all GPUs differ, and each reaches the memory of those to which it has peer access.
  has_other_gpus_ = std::any_of(statements.begin(), statements.end(),
                                [&](const RankStatement& one) { return text_of(one.gpu) != text_of(statements[0].gpu); });
  const PeerBuffers peer_buffers =
      is_one_process(statements) && !pairs_.any() ? PeerBuffers::in_reach : PeerBuffers::out_of_reach;
  const CostModel costs = assumed_device_costs(*control_, statements, pairs_);
  SETO_ASSIGN(parts_->shapes,
              DeviceShapes::create({gpu_.get(), control_->rank(), control_->surroundings(costs), costs,
                                    parts_->workspaces->addresses(), parts_->workspaces->capacity(),
                                    parts_->workspaces->first_piece(), blocks, peer_buffers, &pairs_, relay_.get()}));
  SETO_ASSIGN(parts_->transfers, TransferShapes::create({gpu_.get(), control_->rank(), control_->ranks(),
                                                         parts_->workspaces->addresses(), parts_->workspaces->capacity(), blocks,
                                                         &pairs_, relay_ ? parts_->staging->address() + kStagedMessages : 0},
                                                        *parts_->shapes));
  return {};
}

Status DeviceCommunicator::agree_on_lending(const std::vector<RankStatement>& statements, Bootstrap& bootstrap, Deadline until) {
  if (is_one_process(statements) || pairs_.any()) return {};  // all ranks find the same
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  const auto is_hopeless = [control = control_.get()] { return control->failed(); };
  const LentWindows::Setup setup{gpu_, control_->rank(), statements, is_hopeless};
  SETO_ASSIGN(const std::string obstacle, LentWindows::agree(setup, parts_->windows, bootstrap, until));
  if (!obstacle.empty()) {
    SETO_LOG_AS(info, (LogOrigin{control_->rank(), 0}),
                "GPUs of other processes cannot read buffers where they lie, so all messages are staged: %s", obstacle.c_str());
    return {};
  }
  parts_->placed = std::make_unique<PlacedShapes>(*parts_->shapes);
  parts_->shapes->allow_lending();
  return {};
}

Status DeviceCommunicator::measure_costs(Bootstrap& bootstrap, Deadline until) {
  const CostModel assumed = parts_->shapes->costs();
  const LaunchGate::Unwatched unwatched;
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  const std::size_t capacity = parts_->workspaces->capacity();
  parts_->shapes->use(assumed, DeviceCostMeasurement::capacity_left(capacity));
  DeviceCostMeasurement measurement({gpu_.get(), control_->rank(), control_->ranks(), parts_->shapes.get(),
                                     parts_->launches.get(),
                                     parts_->workspaces->addresses()[static_cast<std::size_t>(control_->rank())], capacity});
  SETO_ASSIGN(const CostModel measured, measurement.run(assumed, bootstrap, until));
  parts_->shapes->use(measured, capacity);
  return {};
}

Result<RankStatement> DeviceCommunicator::prepare(Deadline until) {
  SETO_TRY(gpu_->load_kernels(control_->rank(), until));
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  SETO_ASSIGN(parts_->workspaces, Workspaces::create(gpu_));
  SETO_ASSIGN(const int resident, gpu_->resident_blocks(gpu_->most_threads()));
  RankStatement statement;
  parts_->workspaces->describe(statement);
  statement.multicast = static_cast<std::uint32_t>(multicast_offer(*gpu_, control_->config()));
  statement.resident_blocks = static_cast<std::uint32_t>(resident);
  if (control_->ranks() > 1) statement.paths = gpu_->paths(until);
  return statement;
}

DeviceCommunicator::~DeviceCommunicator() {
  if (is_watched_) {
    if (control_->failed()) parts_->launches->stop();
    (void)drain();
    LaunchWatcher::of_process().remove(*this);
  }
  if (parts_->launches != nullptr) parts_->launches->leave_order();
  relay_.reset();  // its streams end before the control
  if (parts_->workspaces == nullptr) return;
  if (parts_->launches != nullptr && parts_->launches->running() > 0) {
    SETO_LOG_AS(warn, (LogOrigin{control_->rank(), 0}),
                "a kernel on GPU %d did not end within %llu ms after it was told to stop: its memory stays allocated",
                gpu_->device(), static_cast<unsigned long long>(kStopMs));
    (void)parts_.release();  // NOLINT: the kernel uses it
    return;
  }
  // The connection of a rank that has left is closed, too, but such a rank says itself when it is gone.
  for (Rank peer = 0; is_watched_ && peer < control_->ranks(); ++peer)
    if (control_->members().is_dead(peer) && !control_->members().has_left(peer)) parts_->workspaces->mark_dead(peer);
  if (control_->failed()) parts_->patience = Deadline::after_ms(kAbandonedMs);
  LaunchWatcher::of_process().retire(std::move(parts_));
}

template <class Launch>
Status DeviceCommunicator::guarded(const Launch& launch) {
  SETO_TRY(first_failure());
  try {
    return launch();
  } catch (const std::bad_alloc&) {
    end_without_memory();
    throw;
  }
}

Status DeviceCommunicator::enqueue(std::span<const Call> calls, cuda::Stream stream, bool is_alone) {
  return guarded([&] { return enqueue_all(calls, stream, is_alone); });
}

Result<std::uint64_t> DeviceCommunicator::capture_of(cuda::Stream stream, const ContextScope& scope) const {
  SETO_TRY(scope.status());
  SETO_TRY(check_stream(*gpu_, stream));
  return parts_->launches->capture_of(stream);
}

Status DeviceCommunicator::enqueue(const TransferRequest& request) {
  return guarded([&] {
    const ContextScope scope(*gpu_);
    const Result<std::uint64_t> capture = capture_of(request.stream, scope);
    if (request.is_alone && scope.status().ok() && is_refused_by_capture(capture.status())) return capture.status();
    Status status = capture.ok() ? launch(request, capture.value()) : capture.status();
    return status.ok() ? status : end_with(status, "sends and receives");
  });
}

Status DeviceCommunicator::enqueue_all(std::span<const Call> calls, cuda::Stream stream, bool is_alone) {
  const ContextScope scope(*gpu_);
  const Result<std::uint64_t> capture = capture_of(stream, scope);
  if (is_alone && scope.status().ok() && is_refused_by_capture(capture.status())) return capture.status();
  Status status = capture.status();
  const Call* last = &calls.front();
  for (const Call& call : calls) {
    if (!status.ok()) break;
    last = &call;
    status = add(call, stream, capture.value());
  }
  Status launched = parts_->launches->flush();  // also those before a wrong call
  if (status.ok()) status = std::move(launched);
  return status.ok() ? status : end_with(status, name_of(last->collective));
}

Status DeviceCommunicator::end_with(const Status& reason, std::string_view call) {
  control_->fail(failure(reason.code(), "rank %d could not launch its call of %s, which ends a communicator on device memory: %s",
                         control_->rank(), std::string(call).c_str(), std::string(reason.text()).c_str()),
                 control_->rank());
  parts_->launches->stop();
  LaunchWatcher::of_process().wake();
  return reason;
}

Status DeviceCommunicator::first_failure() {
  if (lacks_memory_.load(std::memory_order_acquire)) fail_without_memory();
  return control_->failed() ? control_->first_failure() : Status();
}

void DeviceCommunicator::end_without_memory() noexcept {
  lacks_memory_.store(true, std::memory_order_release);
  parts_->launches->stop();
  try {
    fail_without_memory();
  } catch (const std::bad_alloc&) {  // NOLINT: the watcher tries again
  }
  parts_->launches->drop(control_->first_failure());
  LaunchWatcher::of_process().wake();
}

void DeviceCommunicator::fail_without_memory() {
  if (control_->failed()) return;
  control_->fail(failure(Code::unavailable,
                         "rank %d could not launch a call, which ends a communicator on device memory: its process has no memory "
                         "of the host left",
                         control_->rank()),
                 control_->rank());
}

Status DeviceCommunicator::add(const Call& call, cuda::Stream stream, std::uint64_t capture) {
  SETO_TRY(check(call, control_->rank(), control_->ranks()));
  SETO_TRY(check_buffers(*gpu_, call, control_->rank(), control_->ranks()));
  if (wanted_slots_) take_gpu_slots(wanted_slots_, parts_->slots, *relay_);
  SETO_ASSIGN(std::shared_ptr<DeviceShape> shape, parts_->shapes->find(call, parts_->launches->ended()));
  SETO_ASSIGN(shape, parts_->multicast->find(call, shape, parts_->launches->ended()));
  SETO_TRY(parts_->launches->make_room(*shape, stream, capture));
  Launches::Request request;
  request.shape = shape;
  request.stream = stream;
  request.note = shape->note;
  request.limit = CallDeadline(call.deadline_ms, control_->config());
  SETO_TRY(set_buffers(call, request, capture));
  SETO_TRY(set_residual(call, request, capture));
  SETO_ASSIGN(request.arguments.scratch, parts_->shapes->scratch(shape->scratch_size));
  request.arguments.workspace = parts_->workspaces->addresses()[static_cast<std::size_t>(control_->rank())];
  if (relay_ != nullptr)
    take_number_of_relay(request, capture);
  else if (capture == 0)
    request.note.operation = control_->order().next();
  if (capture == 0 && request.note.operation != 0) SETO_TRY(stream_users_->take(stream, request.note.operation));
  if (capture == 0) request.record.issue(control_->observability(), shape->recorded, request.note.operation, call.mark);
  if (capture == 0 && relay_ == nullptr) {
    request.note.digest = digest_ = folded(digest_, shape->note.digest);
    control_->order().issue();  // before the watcher can see its kernel
  }
  return parts_->launches->add(std::move(request), capture);
}

Result<std::shared_ptr<ErrorFeedback>> DeviceCommunicator::make_feedback(DataType type, std::uint64_t count) {
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  return ErrorFeedback::create_in([this](std::size_t size) { return parts_->shapes->residuals(gpu_, size); }, type, count,
                                  control_->serial());
}

// Launches of a communicator run one after another, so a state serves one at a time.
Status DeviceCommunicator::set_residual(const Call& call, Launches::Request& request, std::uint64_t capture) const {
  if (call.feedback == nullptr) return {};
  SETO_TRY(call.feedback->check_communicator(control_->serial()));
  auto& residuals = static_cast<DeviceResiduals&>(*call.feedback->memory());
  SETO_TRY(capture != 0 ? residuals.before_capture() : residuals.before_launch(request.stream));
  request.arguments.residual = residuals.address();
  if (capture == 0) request.residuals = std::static_pointer_cast<DeviceResiduals>(call.feedback->memory());
  return {};
}

Status DeviceCommunicator::set_buffers(const Call& call, Launches::Request& request, std::uint64_t capture) {
  request.arguments.input = reinterpret_cast<kernels::Address>(call.input);
  request.arguments.output = reinterpret_cast<kernels::Address>(call.output);
  LentWindows* const windows = parts_->windows.get();
  if (!request.shape->lends || (windows == nullptr && !has_other_gpus_)) return {};
  const CallSizes sizes{input_bytes(call, control_->rank(), control_->ranks()),
                        output_bytes(call, control_->rank(), control_->ranks())};
  LendingRules rules{[this](const BufferRange& range) { return obstacle_in(gpu_->driver(), range); },
                     [this](std::size_t size) { return parts_->shapes->lendable(size); }};
  if (windows != nullptr)
    rules = {[=](const BufferRange& range) { return windows->obstacle_in(range); },
             [=](std::size_t size) { return windows->copy_memory(size); }};
  SETO_ASSIGN(CallBuffers buffers, lendable_buffers(call, sizes, rules));
  if (buffers.copied_because != nullptr && !std::exchange(has_told_of_copies_, true))
    SETO_LOG_AS(
        info, (LogOrigin{control_->rank(), 0}),
        "%s: other GPUs cannot read a buffer at its place, because %s: such calls work on a copy, which takes time and as "
        "much memory; setoMemAlloc or cudaMalloc avoids it",
        request.shape->what.c_str(), buffers.copied_because);
  request.arguments.input = buffers.input;
  request.arguments.output = buffers.output;
  request.before = std::move(buffers.before);
  request.after = std::move(buffers.after);
  if (!request.before.empty() || !request.after.empty()) SETO_TRY(parts_->launches->flush());  // it has its own launch
  if (windows == nullptr) return {};
  const std::uint64_t ended = parts_->launches->ended();
  SETO_ASSIGN(const std::vector<LentDistance> distances,
              windows->distances({buffers.input, sizes.input}, {buffers.output, sizes.output},
                                 {parts_->launches->issued() + 1, ended, capture != 0}));
  SETO_ASSIGN(request.shape, parts_->placed->find(request.shape, distances, ended));
  return {};
}

Status DeviceCommunicator::launch(const TransferRequest& asked, std::uint64_t capture) {
  for (const Transfer& transfer : asked.batch.transfers()) SETO_TRY(check(transfer, control_->ranks()));
  for (const cuda::Stream joined : asked.joined) SETO_TRY(check_stream(*gpu_, joined));
  for (const Transfer& transfer : asked.batch.transfers()) SETO_TRY(check_buffers(*gpu_, transfer));
  Launches::Request request;
  SETO_ASSIGN(request.shape, parts_->transfers->find(asked.batch, parts_->launches->ended()));
  request.transfers.exchange = parts_->transfers->number_exchanges(asked.batch);
  if (request.shape == nullptr) return {};
  if (relay_ != nullptr) {
    const LaunchKind kind = capture != 0 ? LaunchKind::of_graph : LaunchKind::once;
    SETO_ASSIGN(request.messages, relay_->messages().hold(request.shape->transfers->relayed, kind));
  }
  request.transfers.reports = parts_->transfers->reports();
  request.stream = asked.stream;
  request.joined = asked.joined;
  request.limit = CallDeadline(asked.batch.deadline_ms(), control_->config());
  if (capture == 0) request.record.issue(control_->observability(), request.shape->recorded, 0, asked.mark);
  return parts_->launches->launch(std::move(request), capture);
}

void DeviceCommunicator::take_number_of_relay(Launches::Request& request, std::uint64_t capture) {
  DeviceShape& shape = *request.shape;
  if (capture == 0 && !relay_->announces()) {
    request.note = relay_->add(shape.note, shape.relayed);
    return;
  }
  request.shape->is_captured = true;  // its number is not known yet, so it stays
  if (capture == 0) request.announced = std::make_shared<AnnouncedOperation>();
  request.announcement = relay_->announce(shape.note, shape.relayed, request.announced);
}

Status DeviceCommunicator::drain() {
  Deadline until = Deadline::never();
  bool is_stopped = false;
  while (is_busy()) {
    if (control_->failed()) {
      parts_->launches->stop();
      if (!std::exchange(is_stopped, true)) until = Deadline::after_ms(kStopMs);
    }
    if (relay_ != nullptr && parts_->launches->running() == 0) relay_->messages().check_end();
    if (until.passed() || !LaunchWatcher::of_process().wake()) break;
    parts_->launches->await_change();
  }
  LaunchWatcher::of_process().end_look();  // it may have ended a kernel, and say next why
  return control_->failed() ? control_->first_failure() : Status();
}

// ---- on the watcher's thread, or as its task on another one
Watched::Activity DeviceCommunicator::look() {
  if (lacks_memory_.load(std::memory_order_acquire)) fail_without_memory();
  const bool has_graphs = parts_->launches->has_graphs();
  if (is_busy() || overdue_->is_there()) {  // as a task: operations of the control, as a split makes them, may run meanwhile
    TokenTask task([this] { look_at_launches(); });
    control_->context()->progress().run(task);
  }
  if (parts_->launches->running() == 0 && has_graphs && next_look_at_peers_.passed()) {
    next_look_at_peers_ = Deadline::after_ms(kLookAtPeersMs);
    transfer_watch_->check_refusal();
    control_->check_peers();
  }
  if (has_graphs) replay_watch_->judge();
  if (control_->failed()) parts_->launches->stop();
  if (control_->failed() && !control_->failures().tell_peers()) return Activity::running;  // without memory, until then
  // No event may tell of a kernel that has to be stopped: of a graph, or of a launch that failed half-way.
  if (parts_->launches->is_stopping() || is_busy() || awaits_answer()) return Activity::running;
  return has_graphs ? Activity::graphs : Activity::none;
}

void DeviceCommunicator::look_at_launches() {
  if (parts_->launches->running() == 0 && !overdue_->is_there()) return;
  const ContextScope scope(*gpu_);
  const Status stopped = awaits_answer() ? Status(Code::timeout, "stopped") : Status();
  const Launches::State state = parts_->launches->poll(control_->failed() ? control_->first_failure() : stopped);
  transfer_watch_->check_refusal();
  if (control_->failed()) return;
  if (!overdue_->is_there() || !state.failure.ok()) return judge(state);
  if (overdue_->has_answered(state)) fail_overdue();
}

void DeviceCommunicator::judge(const Launches::State& state) {
  PeerFailures& failures = control_->failures();
  if (!state.failure.ok())
    return control_->fail(failure(Code::internal, "operation %llu (%s): the kernel of rank %d failed: %s",
                                  static_cast<unsigned long long>(state.note.operation), state.shape->what.c_str(),
                                  control_->rank(), std::string(state.failure.text()).c_str()),
                          control_->rank());
  if (state.shape == nullptr) {  // all have ended: compare the last call with those of the others, which include all before
    slow_ = {};
    if (state.note.operation != 0) (void)failures.check_notes(state.note);
    return;
  }
  if (state.shape->transfers != nullptr)
    transfer_watch_->judge(state);
  else
    judge_collective(state);
  if (control_->failed() || !state.has_begun || !state.is_overdue) return;
  overdue_->stop(state, relay_ != nullptr ? relay_->waits_for() : std::string());
}

void DeviceCommunicator::judge_collective(const Launches::State& state) {
  PeerFailures& failures = control_->failures();
  if (next_look_at_peers_.passed()) {
    next_look_at_peers_ = Deadline::after_ms(kLookAtPeersMs);
    if (state.has_begun)
      (void)failures.look_around(state.note);
    else
      control_->check_peers();
  }
  if (control_->failed() || !state.has_begun || state.is_overdue) return;
  if (std::exchange(slow_operation_, state.note.operation) != state.note.operation) slow_ = {};
  if (!slow_.due(state.limit.ms())) return;
  failures.warn_slow(state.note, "runs " + state.shape->plan + " on its GPU", SlowCallWarning::seconds(state.limit.ms()));
  slow_.silence();
}

void DeviceCommunicator::fail_overdue() {
  const Launches::State& state = overdue_->state();
  if (state.shape->transfers != nullptr) return transfer_watch_->fail_overdue(state);
  (void)control_->failures().fail_overdue(state.note, state.limit, overdue_->waits());
}

}  // namespace seto

#include "src/core/device_memory/device_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/core/call/call_shape.h"
#include "src/core/device_memory/buffer_check.h"
#include "src/core/device_memory/device_costs.h"
#include "src/engine/kernels/launch_bounds.h"

namespace seto {
namespace {

constexpr std::uint32_t kMostBlocks = 32;       // of a call
constexpr std::uint64_t kLookAtPeersMs = 20;    // while a kernel runs
constexpr std::uint64_t kStopMs = 10'000;       // for kernels to end after they were stopped
constexpr std::uint64_t kAbandonedMs = 30'000;  // for ranks that may be dead to say that they are gone

// Fails for what no rank can do in this version, so that nothing needs to be told to the others.
Status check_offered(const Call& call) {
  if (call.feedback != nullptr) return failure(Code::invalid_usage, "errorFeedback: not on device memory in this version");
  if (!call.counts.empty())
    return failure(Code::invalid_usage, "recvcounts: parts of different lengths are not on device memory in this version");
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceCommunicator>> DeviceCommunicator::create(std::shared_ptr<Communicator> control,
                                                                       Bootstrap& bootstrap, std::shared_ptr<GpuContext> gpu,
                                                                       Deadline until) {
  std::unique_ptr<DeviceCommunicator> made(new DeviceCommunicator(std::move(control), std::move(gpu)));
  SETO_TRY(made->open(bootstrap, until));
  return made;
}

Status DeviceCommunicator::open(Bootstrap& bootstrap, Deadline until) {
  SETO_ASSIGN(const std::vector<RankStatement> statements, exchange(bootstrap, prepare(), until));
  SETO_TRY(check_ranks(statements));
  const auto connect = [&]() -> Status {
    const ContextScope scope(*gpu_);
    SETO_TRY(scope.status());
    SETO_TRY(parts_->workspaces->connect(control_->rank(), statements));
    SETO_ASSIGN(const std::uint32_t blocks, blocks_of(statements));
    SETO_ASSIGN(parts_->launches, Launches::create(*gpu_, control_->order(), blocks));
    const CostModel costs = assumed_device_costs(control_->costs(), statements);
    SETO_ASSIGN(parts_->shapes, DeviceShapes::create({gpu_.get(), control_->rank(), control_->surroundings(costs), costs,
                                                      parts_->workspaces->addresses(), parts_->workspaces->capacity(), blocks}));
    return {};
  };
  SETO_TRY(agree(bootstrap, connect(), until));
  parts_->workspaces->join();
  if (can_measure_device_costs(statements)) SETO_TRY(measure_costs(statements, bootstrap, until));
  stream_users_ = std::make_unique<StreamUsers>(statements[0].token, control_->rank(), gpu_->handle());
  SETO_TRY(LaunchWatcher::of_process().add(*this));
  is_watched_ = true;
  return {};
}

Status DeviceCommunicator::measure_costs(const std::vector<RankStatement>& statements, Bootstrap& bootstrap, Deadline until) {
  const CostModel assumed = assumed_device_costs(control_->costs(), statements);
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

Result<RankStatement> DeviceCommunicator::prepare() {
  SETO_TRY(gpu_->load_kernels());
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  SETO_ASSIGN(parts_->workspaces, Workspaces::create(gpu_));
  SETO_ASSIGN(const int resident, gpu_->resident_blocks(gpu_->most_threads()));
  RankStatement statement;
  parts_->workspaces->describe(statement);
  statement.token = random_number();
  statement.resident_blocks = static_cast<std::uint32_t>(resident);
  return statement;
}

// All ranks find the same, as they have the same statements and tiers.
Status DeviceCommunicator::check_ranks(const std::vector<RankStatement>& statements) const {
  const Tiers& tiers = control_->tiers();
  if (control_->ranks() == 1 || (tiers.count() == 1 && tiers.kind(0) == TierKind::node)) return {};
  for (Rank rank = 1; rank < static_cast<Rank>(statements.size()); ++rank)
    if (tiers.kind(tiers.between(0, rank)) != TierKind::node)
      return failure(
          Code::invalid_usage,
          "memory: ranks 0 (%s) and %d (%s) are on different hosts: device memory between hosts is not in this version; "
          "use host memory",
          control_->place_of(0).c_str(), rank, control_->place_of(rank).c_str());
  return failure(Code::internal, "memory: ranks of one host have more than one tier");
}

// All blocks of all ranks must run at once. Ranks of one process share their GPU at the same time; processes take turns.
Result<std::uint32_t> DeviceCommunicator::blocks_of(const std::vector<RankStatement>& statements) const {
  std::uint32_t fewest = kMostBlocks;
  for (const RankStatement& one : statements) {
    const auto sharing = static_cast<std::uint32_t>(std::count_if(statements.begin(), statements.end(), [&](const auto& other) {
      return other.process == one.process && text_of(other.gpu) == text_of(one.gpu);
    }));
    if (one.resident_blocks < sharing)
      return failure(
          Code::unavailable,
          "%u ranks of one process share GPU %d (%s), which holds only %u blocks of the library's kernels at once: put "
          "fewer ranks on it",
          sharing, one.device, text_of(one.gpu).c_str(), one.resident_blocks);
    fewest = std::min(fewest, one.resident_blocks / sharing);
  }
  return fewest;
}

DeviceCommunicator::~DeviceCommunicator() {
  if (is_watched_) {
    if (control_->failed()) parts_->launches->stop();
    (void)drain();
    LaunchWatcher::of_process().remove(*this);
  }
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

Status DeviceCommunicator::enqueue(const Call& call, cuda::Stream stream) {
  if (control_->failed()) return control_->first_failure();
  SETO_TRY(check_offered(call));
  Status status = launch(call, stream);
  if (status.ok()) return status;
  control_->fail(failure(status.code(), "rank %d could not launch its call of %s, which ends a communicator on device memory: %s",
                         control_->rank(), name_of(call.collective).data(), std::string(status.text()).c_str()),
                 control_->rank());
  parts_->launches->stop();
  return status;
}

Status DeviceCommunicator::launch(const Call& call, cuda::Stream stream) {
  SETO_TRY(check(call, control_->rank(), control_->ranks()));
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  SETO_TRY(check_stream(*gpu_, stream));
  SETO_TRY(check_buffers(*gpu_, call, control_->rank(), control_->ranks()));
  SETO_ASSIGN(const std::uint64_t capture, parts_->launches->capture_of(stream));
  SETO_ASSIGN(const std::shared_ptr<DeviceShape> shape, parts_->shapes->find(call, parts_->launches->ended()));
  Launches::Request request{shape, {}, stream, shape->note, CallDeadline(call.deadline_ms, control_->config()), {}};
  request.arguments.input = reinterpret_cast<kernels::Address>(call.input);
  request.arguments.output = reinterpret_cast<kernels::Address>(call.output);
  SETO_ASSIGN(request.arguments.scratch, parts_->shapes->scratch(shape->scratch_size));
  request.arguments.workspace = parts_->workspaces->addresses()[static_cast<std::size_t>(control_->rank())];
  if (capture == 0) {
    request.note.operation = control_->order().next();
    request.note.digest = digest_ = folded(digest_, shape->note.digest);
    SETO_TRY(stream_users_->take(stream, request.note.operation));
    request.record.issue(control_->observability(), shape->recorded, request.note.operation, call.mark);
  }
  if (capture == 0) control_->order().issue();  // before the watcher can see its kernel
  return parts_->launches->launch(request, capture);
}

Status DeviceCommunicator::drain() {
  Deadline until = Deadline::never();
  bool is_stopped = false;
  while (parts_->launches->running() > 0) {
    if (control_->failed() && !std::exchange(is_stopped, true)) {
      parts_->launches->stop();
      until = Deadline::after_ms(kStopMs);
    }
    if (until.passed() || !LaunchWatcher::of_process().wake()) break;
    parts_->launches->await_change();
  }
  return control_->failed() ? control_->first_failure() : Status();
}

// ---- on the watcher's thread

Watched::Activity DeviceCommunicator::look() {
  const bool has_graphs = parts_->launches->has_graphs();
  if (parts_->launches->running() > 0) {
    const ContextScope scope(*gpu_);
    const Launches::State state = parts_->launches->poll(control_->failed() ? control_->first_failure() : Status());
    if (!control_->failed()) judge(state);
  } else if (has_graphs && next_look_at_peers_.passed()) {
    next_look_at_peers_ = Deadline::after_ms(kLookAtPeersMs);
    control_->check_peers();
  }
  if (control_->failed()) parts_->launches->stop();
  if (parts_->launches->running() > 0) return Activity::running;
  return has_graphs ? Activity::graphs : Activity::none;
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
  if (next_look_at_peers_.passed()) {
    next_look_at_peers_ = Deadline::after_ms(kLookAtPeersMs);
    if (state.has_begun)
      (void)failures.look_around(state.note);
    else
      control_->check_peers();
  }
  if (control_->failed() || !state.has_begun) return;
  if (state.note.operation != slow_operation_) slow_ = {};
  slow_operation_ = state.note.operation;
  if (state.is_overdue) return fail_overdue(state);
  if (!slow_.due(state.limit.ms())) return;
  failures.warn_slow(state.note, "runs " + state.shape->plan + " on its GPU", SlowCallWarning::seconds(state.limit.ms()));
  slow_.silence();
}

// The blocks say where they are when they are told to stop.
void DeviceCommunicator::fail_overdue(const Launches::State& state) {
  parts_->launches->stop();
  const Deadline until = Deadline::after_ms(kStopMs);
  const std::size_t before = parts_->launches->running();
  while (parts_->launches->running() == before && !parts_->launches->stopped_at() && !until.passed()) {
    (void)parts_->launches->poll(Status(Code::timeout, "stopped"));
    std::this_thread::yield();
  }
  const std::optional<kernels::StopReport> report = parts_->launches->stopped_at();
  (void)control_->failures().fail_overdue(state.note, state.limit,
                                          report ? state.shape->wait_text(*report) : "waits for no peer in its kernel");
}

}  // namespace seto

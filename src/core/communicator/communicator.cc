#include "src/core/communicator/communicator.h"

#include <utility>

#include "src/core/call/error_feedback.h"
#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/finalize_task.h"
#include "src/core/communicator/link_calibration.h"
#include "src/core/communicator/receive_any_task.h"
#include "src/core/communicator/transfer_task.h"
#include "src/core/connect/connect_ranks.h"
#include "src/core/connect/deferred_cleanup.h"

namespace seto {
namespace {

// While drain() finds nothing to do. It soon sleeps for a millisecond in each pass.
constexpr std::uint32_t kIdlePassesBetweenChecks = 16;

// The serial number of the next communicator of this process.
std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void pretend(Sites& sites, const PretendedLinks& links) {
  const LinkFacts link{.medium = LinkMedium::wide_area, .round_trip_s = links.round_trip_seconds, .source = FactSource::measured};
  const std::uint32_t count = sites.links.sites();
  sites.links = SiteLinks(count);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to)
      if (from != to) (void)sites.links.add({0, from, to, link});
}

}  // namespace

Communicator::Communicator(const CommunicatorOptions& options, std::shared_ptr<Context> context, ConnectedRanks ranks)
    : serial_(next_serial()),
      name_(options.name),
      config_(options.config),
      context_(std::move(context)),
      members_(std::move(ranks)),
      order_(members_),
      failures_({members_, order_, *queued_, *context_, observability_}),
      rates_({members_, order_, *context_, failures_}),
      launches_(std::make_unique<LaunchCache>(LaunchCache::Setup{rank(), surroundings({}), &members_.peer_group()})),
      transfers_(std::make_unique<PointToPoint>(rank(), this->ranks(), members_.peer_group(), config_.slot_store)) {}

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap, const CommunicatorOptions& options) {
  std::shared_ptr<Context> context = options.context;
  if (context == nullptr) {
    SETO_ASSIGN(context, Context::create(options.config));
  }
  const Deadline until = Deadline::after_ms(options.config.init_timeout_ms).unless(options.given_up);
  SETO_ASSIGN(ConnectedRanks ranks, connect_ranks(bootstrap, {*context, options.config}, until));
  if (PretendedLinks::of_process() != nullptr) pretend(ranks.sites, *PretendedLinks::of_process());
  const std::string found_site = ranks.found_site;
  std::unique_ptr<Communicator> communicator(new Communicator(options, std::move(context), std::move(ranks)));
  // Before any rank completes its init, so that a failure to use this signal reaches all ranks.
  if (options.dumps != nullptr && options.config.dump_signal != 0)
    SETO_TRY(options.dumps->listen_to(static_cast<int>(options.config.dump_signal)));
  const std::uint64_t start_ns = monotonic_ns();
  SETO_TRY(communicator->rates_.open(options.config));
  SETO_ASSIGN(const CostModel constants, agree_on_costs(*communicator, bootstrap, until));
  communicator->rates_.start(constants, options.inherited);
  const RateVersions::Known known = communicator->rates_.known();
  communicator->launches_->use(known.costs, known.version);
  communicator->transfers_->use(store_sizes(known.costs.node));
  communicator->calibration_ns_ = monotonic_ns() - start_ns;
  // Only now, when all ranks have the same settings, so that what they found is the same.
  if (!found_site.empty()) communicator->context_->remember_site(found_site, options.config.site_round_trip_us);
  communicator->observability_.start(*communicator, options.config, options.dumps, options.listing);
  communicator->flows_.begin(options.config, options.name);
  return communicator;
}

Communicator::~Communicator() {
  observability_.stop();
  if (queued_->under_way() > 0) {
    fail(failure(Code::aborted, "rank %d destroyed the communicator before its operations had ended", rank()), rank());
    (void)drain();
  }
  rates_.stop();
  flows_.end(first_failure());
  launches_.reset();
  leave_ranks(*context_, members_.release(), {order_.issued(), failed(), std::move(transfers_)});
}

Status Communicator::run(const Call& call) {
  if (failed()) return first_failure();
  Prepared made = prepared(call);
  CollectiveTask task(*this, call, made.shape, order_.next(), nullptr, CollectiveTask::Next::driven);
  if (made.shape == nullptr && settle(task, call, std::move(made))) [[unlikely]]
    late_calls_.fetch_add(1, std::memory_order_relaxed);
  order_.issue();
  context_->progress().run(task);
  return task.status();
}

// Checks the call, chooses a plan and binds it. Nothing of that is needed for a call that repeats the last one, buffers included:
// it would cost a sixth of the time of an 8-byte all-reduce.
Communicator::Prepared Communicator::prepared(const Call& call) {
  if (last_shape_ != nullptr && rates_.keeps(order_.next()) && repeats(last_call_, call)) return {last_shape_, {}};
  last_shape_ = nullptr;
  Status rejected = check(call, rank(), ranks());
  if (rejected.ok() && call.feedback != nullptr) rejected = call.feedback->check_communicator(serial_);
  if (!rejected.ok()) return {nullptr, std::move(rejected)};
  if (!rates_.keeps(order_.next()) && !enter(order_.next())) return {};
  Result<BoundShape*> found = launches_->find(call);
  if (!found.ok()) return {nullptr, found.status()};
  last_call_ = call;
  last_call_.counts = last_call_.displacements = {};
  last_call_.feedback.reset();
  last_shape_ = call.counts.empty() ? found.value() : nullptr;
  return {found.value(), {}};
}

// On the calling thread: an operation that may use another version than the one before. False: it is bound late.
bool Communicator::enter(std::uint64_t operation) {
  if (late_calls_.load(std::memory_order_acquire) != 0) return false;
  const std::optional<RateVersions::Known> known = rates_.enter(operation, true);
  if (known) launches_->use(known->costs, known->version);
  return known.has_value();
}

bool Communicator::bind_late(const Call& call, std::uint64_t operation, Result<BoundShape*>& shape) {
  const std::optional<RateVersions::Known> known = rates_.enter(operation, false);
  if (!known) return false;
  launches_->use(known->costs, known->version);
  shape = launches_->find(call);
  return true;
}

// For a task without a shape. True: it is bound late.
bool Communicator::settle(CollectiveTask& task, const Call& call, Prepared prepared) {
  const bool late = prepared.rejected.ok();
  if (late)
    task.bind_late(call);
  else
    task.reject(std::move(prepared.rejected));
  return late;
}

std::unique_ptr<Task> Communicator::issue(const Call& call, TaskGate* gate) {
  Prepared made = prepared(call);
  auto task = std::make_unique<CollectiveTask>(*this, call, made.shape, order_.next(), gate);
  const bool late = made.shape == nullptr && settle(*task, call, std::move(made));
  if (gate != nullptr) queue(*task);
  if (late) late_calls_.fetch_add(1, std::memory_order_relaxed);  // nothing can throw any more
  order_.issue();
  return task;
}

Status Communicator::run(const TransferCall& call) {
  if (failed()) return first_failure();
  TransferTask task(*this, transfers_->prepare(call), call, nullptr);
  context_->progress().run(task);
  return task.status();
}

std::unique_ptr<Task> Communicator::issue(const TransferCall& call, TaskGate* gate) {
  auto task = std::make_unique<TransferTask>(*this, transfers_->prepare(call), call, gate);
  if (gate != nullptr) queue(*task);
  return task;
}

Status Communicator::run(const ReceiveAnyCall& call) {
  if (failed()) return first_failure();
  ReceiveAnyTask task(*this, transfers_->open_all(), call, nullptr);
  context_->progress().run(task);
  return task.status();
}

std::unique_ptr<Task> Communicator::issue(const ReceiveAnyCall& call, TaskGate* gate) {
  auto task = std::make_unique<ReceiveAnyTask>(*this, transfers_->open_all(), call, gate);
  if (gate != nullptr) queue(*task);
  return task;
}

Status Communicator::drain() {
  Progress& progress = context_->progress();
  for (std::uint32_t idle = 0; queued_->under_way() > 0;) {
    if (idle % kIdlePassesBetweenChecks == 0) failures_.check_queued_tasks();
    if (failed()) queued_->end_all(first_failure());
    if (progress.pass())
      idle = 0;
    else
      progress.relax(idle++);
  }
  return failed() ? first_failure() : Status();
}

Status Communicator::finalize() {
  SETO_TRY(drain());
  FinalizeTask task(*this);
  context_->progress().run(task);
  return task.status();
}

}  // namespace seto

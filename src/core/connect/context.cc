#include "src/core/connect/context.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace seto {
namespace {

// Lasts about as long as a peer works on a slice. After that a yield costs less than it may save.
constexpr std::uint32_t kSpins = 4000;

ContextId next_context_id() {
  static std::atomic<ContextId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::uint32_t default_spins(double ranks_per_core) { return ranks_per_core <= 1 ? kSpins : 0; }

Result<std::shared_ptr<Context>> Context::create(const Config& config) {
  std::shared_ptr<Context> context(new Context(config));
  context->id_ = next_context_id();
  SETO_ASSIGN(context->wakeup_, Wakeup::create());
  context->progress_ =
      std::make_unique<Progress>(*context, config.spin == kAutomatic ? kSpins : static_cast<std::uint32_t>(config.spin));
  SETO_ASSIGN(context->transports_,
              ContextTransports::create({context->id_, &context->config_, context->wakeup_}, *context->progress_));
  return context;
}

Context::~Context() {
  if (progress_ != nullptr) progress_->stop();  // its thread uses the other members
}

KnownConnections Context::known(const std::string& host) {
  Connections dropped;  // closed without the lock
  const std::lock_guard lock(mutex_);
  return connection_cache_.known(host, dropped);
}

void Context::keep(const Connections& used, const std::string& host) {
  const std::lock_guard lock(mutex_);
  connection_cache_.keep(used, host);
}

void Context::clean_up_later(std::unique_ptr<Cleanup> cleanup) {
  const std::lock_guard lock(mutex_);
  std::erase_if(cleanups_, [](const std::unique_ptr<Cleanup>& one) { return one->done(); });
  if (!cleanup->done()) cleanups_.push_back(std::move(cleanup));
}

void Context::run_cleanups() {
  const std::lock_guard lock(mutex_);
  std::erase_if(cleanups_, [](const std::unique_ptr<Cleanup>& one) { return one->done(); });
}

std::optional<CostModel> Context::costs() const {
  const std::lock_guard lock(mutex_);
  return costs_;
}

std::string Context::found_site(std::uint64_t limit_us) const {
  const std::lock_guard lock(mutex_);
  return limit_us == found_site_limit_us_ ? found_site_ : std::string();
}

void Context::remember_site(const std::string& label, std::uint64_t limit_us) {
  const std::lock_guard lock(mutex_);
  found_site_ = label;
  found_site_limit_us_ = limit_us;
}

void Context::remember(const CostModel& costs) {
  const std::lock_guard lock(mutex_);
  costs_ = costs;
}

void Context::expect_ranks_per_core(double ranks_per_core) {
  const std::lock_guard lock(mutex_);
  // The largest value counts: a small communicator that shares the context does not free any core.
  ranks_per_core_ = std::max(ranks_per_core_, ranks_per_core);
  if (config_.spin == kAutomatic) progress_->set_spins(default_spins(ranks_per_core_));
}

void Context::arm() { transports_->arm(); }

void Context::disarm() { transports_->disarm(); }

void Context::await_wakeup(int milliseconds) { transports_->await(milliseconds); }

Moved Context::pump() { return transports_->progress(); }

bool Context::pumps_now() const { return transports_->sends_now(); }

void Context::wake() { wakeup_->ring(); }

}  // namespace seto

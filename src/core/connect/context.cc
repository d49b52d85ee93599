#include "src/core/connect/context.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/core_barrier.h"
#include "src/core/neighbour.h"
#include "transports/local/local_contexts.h"

namespace seto {
namespace {

constexpr std::size_t kHeadSize = 4096;
// Covers a peer's work on a slice; beyond it a yield costs less than what it may save.
constexpr std::uint32_t kSpins = 4000;
// Of epoll's data: the bell that peers ring, and the sockets of all links.
constexpr std::uint64_t kBell = 0;
constexpr std::uint64_t kLinks = 1;

ContextId next_context_id() {
  static std::atomic<ContextId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

LivenessSettings liveness_of(const Config& config) { return {config.heartbeat_ms, config.liveness_timeout_ms}; }

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::uint32_t default_spins(double ranks_a_core) { return ranks_a_core <= 1 ? kSpins : 0; }

Result<std::shared_ptr<Context>> Context::create(const Config& config) {
  (void)every_core_can_be_reached();
  std::shared_ptr<Context> context(new Context(config));
  context->id_ = next_context_id();
  SETO_ASSIGN(Segment segment, Segment::create({}));
  SETO_TRY(segment.populate(0, kHeadSize));
  Fd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell.valid()) return system_failure(Code::unavailable, "no descriptor for a context's bell (ulimit -n)");
  context->segment_ = std::make_shared<SharedSegment>(SharedSegment{std::move(segment), std::move(bell)});
  SharedSegment* const shared = context->segment_.get();
  // Until the pool is gone nobody else takes the segment's last share: see the order of members.
  context->pool_ = std::make_unique<slots::Pool>(
      kHeadSize, shared->segment.size(),
      [shared](std::size_t offset, std::size_t size) { return shared->segment.populate(offset, size); },
      [shared](std::size_t offset, std::size_t size) { return shared->segment.release(offset, size); },
      config.shared_memory_limit == kAutomatic ? shared->segment.size() : config.shared_memory_limit);
  context->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!context->epoll_.valid()) return system_failure(Code::unavailable, "no descriptor for a context to sleep on (ulimit -n)");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kBell;
  if (epoll_ctl(context->epoll_.get(), EPOLL_CTL_ADD, shared->bell.get(), &event) != 0)
    return system_failure(Code::unavailable, "epoll refuses a context's bell");
  context->progress_ =
      std::make_unique<Progress>(*context, config.spin == kAutomatic ? kSpins : static_cast<std::uint32_t>(config.spin));
  LocalContexts::of_process().add(context->id_, context->segment_);
  return context;
}

Context::~Context() {
  progress_.reset();  // joins its thread, which uses the rest
  LocalContexts::of_process().remove(id_);
  for (const auto& neighbour : acquaintances_.neighbours()) neighbour->leave(id_);
}

Result<Heartbeats*> Context::beat() {
  SETO_ASSIGN(Heartbeats* const heartbeats, Heartbeats::of_process(liveness_of(config_)));
  const std::lock_guard lock(mutex_);
  if (!std::exchange(beating_, true)) beat_ = heartbeats->beat(head().beats);
  return heartbeats;
}

Result<std::shared_ptr<Connection>> Context::open(const PeerAddress& peer, const RemoteDoor& door, Deadline until) {
  SETO_ASSIGN(tcp::Domain* const links, domain());
  SETO_ASSIGN(FrontDoor* const doors, FrontDoor::of_process({config_.interface, config_.ports}));
  SETO_ASSIGN(Wires* const wires, Wires::of_process(*doors, liveness_of(config_)));
  return Connection::open({id_, segment_.get(), links, doors, wires}, peer, door, until);
}

Result<tcp::Domain*> Context::domain() {
  const std::lock_guard lock(mutex_);
  if (domain_ != nullptr) return domain_.get();
  SETO_ASSIGN(std::unique_ptr<tcp::Domain> made, tcp::Domain::create());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kLinks;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made->descriptor(), &event) != 0)
    return system_failure(Code::unavailable, "epoll refuses the links of a context");
  SETO_TRY(progress_->prepare());
  domain_ = std::move(made);
  output_ = std::make_unique<OutputTask>(*domain_);
  domain_->on_output([this] { output_->begin(*progress_); });
  tcp_.store(domain_.get(), std::memory_order_release);
  return domain_.get();
}

void Context::ends(bool failed) {
  if (tcp::Domain* const links = tcp_.load(std::memory_order_acquire)) links->hurry(failed);
}

bool Context::pump() {
  tcp::Domain* const links = tcp_.load(std::memory_order_acquire);
  return links != nullptr && links->pump();
}

KnownConnections Context::known(const std::string& host) {
  Connections dead;  // closed without the lock
  const std::lock_guard lock(mutex_);
  return acquaintances_.known(host, dead);
}

void Context::keep(const Connections& met, const std::string& host) {
  const std::lock_guard lock(mutex_);
  acquaintances_.keep(met, host);
}

void Context::retire(std::unique_ptr<Retired> remains) {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [](const std::unique_ptr<Retired>& one) { return one->over(); });
  if (!remains->over()) retired_.push_back(std::move(remains));
}

void Context::tidy() {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [](const std::unique_ptr<Retired>& one) { return one->over(); });
}

std::optional<CostModel> Context::costs() const {
  const std::lock_guard lock(mutex_);
  return costs_;
}

void Context::remember(const CostModel& costs) {
  const std::lock_guard lock(mutex_);
  costs_ = costs;
}

void Context::expect_crowding(double ranks_a_core) {
  const std::lock_guard lock(mutex_);
  // The largest communicator counts: one of few ranks that shares the context does not make more cores.
  crowding_ = std::max(crowding_, ranks_a_core);
  if (config_.spin == kAutomatic) progress_->set_spins(default_spins(crowding_));
}

void Context::arm() {
  // Writers of counters look at `armed` after their store with no fence between: it would cost a third of a small all-reduce.
  head().armed.store(1, std::memory_order_relaxed);
  (void)pass_barrier_on_every_core();
  if (tcp::Domain* const links = tcp_.load(std::memory_order_acquire)) links->prepare_to_sleep();
}

void Context::disarm() { head().armed.store(0, std::memory_order_relaxed); }

void Context::await_bell(int milliseconds) {
  std::array<epoll_event, 2> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 != kBell) continue;  // links: whoever is woken pumps
    eventfd_t rung = 0;
    (void)eventfd_read(segment_->bell.get(), &rung);
  }
}

void Context::wake() { (void)eventfd_write(segment_->bell.get(), 1); }

}  // namespace seto

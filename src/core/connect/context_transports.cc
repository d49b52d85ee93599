#include "src/core/connect/context_transports.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/core/connect/transport_list.h"

namespace seto {
namespace {

// Values of epoll's data: the wakeup, and the transports, whose events the thread handles by progress().
constexpr std::uint64_t kWakeup = 0;
constexpr std::uint64_t kTransport = 1;

Status watch(const Fd& epoll, int descriptor, std::uint64_t what, const char* name) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = what;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST) return {};
  return system_failure(Code::unavailable, "epoll refuses the %s of a context", name);
}

}  // namespace

Result<std::unique_ptr<ContextTransports>> ContextTransports::create(const TransportSetup& setup, Progress& progress) {
  std::unique_ptr<ContextTransports> result(new ContextTransports(setup, progress));
  result->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!result->epoll_.valid()) return system_failure(Code::unavailable, "no epoll descriptor for a context (ulimit -n)");
  SETO_TRY(watch(result->epoll_, setup.wakeup->descriptor(), kWakeup, "wakeup descriptor"));
  SETO_ASSIGN(std::vector<std::unique_ptr<Transport>> transports, make_transports(setup));
  for (auto& each : transports) result->all_.push_back(std::make_unique<Entry>(std::move(each)));
  SETO_TRY(result->open(0).status());
  return result;
}

// In the order of preference: peers that share memory learn at once that the context has ended, while TCP still delivers data.
ContextTransports::~ContextTransports() {
  for (auto& each : all_) each.reset();
}

Result<Endpoint*> ContextTransports::open(std::size_t index) {
  Entry& entry = *all_[index];
  const std::lock_guard lock(mutex_);
  SETO_ASSIGN(Endpoint* const endpoint, entry.transport->open([this, &entry] { entry.output.begin(progress_); }));
  if (entry.open.load(std::memory_order_relaxed)) return endpoint;
  if (const int descriptor = entry.transport->event_fd(); descriptor >= 0) {
    SETO_TRY(watch(epoll_, descriptor, kTransport, entry.transport->name()));
    SETO_TRY(progress_.prepare());
    entry.polled.store(true, std::memory_order_release);
    any_polled_.store(true, std::memory_order_release);
  }
  entry.open.store(true, std::memory_order_release);
  return endpoint;
}

void ContextTransports::communicator_ended(bool failed) {
  for (const auto& each : all_)
    if (each->open.load(std::memory_order_acquire)) each->transport->communicator_ended(failed);
}

Transport::MemoryUse ContextTransports::memory_use() const {
  Transport::MemoryUse sum;
  for (const auto& each : all_) {
    const Transport::MemoryUse one = each->transport->memory_use();
    sum.leased += one.leased;
    sum.used += one.used;
  }
  return sum;
}

bool ContextTransports::sends_now() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& each) {
    return each->polled.load(std::memory_order_acquire) && each->transport->sends_now();
  });
}

Moved ContextTransports::progress_polled() {
  Moved moved;
  for (const auto& each : all_)
    if (each->polled.load(std::memory_order_acquire)) moved |= each->transport->progress();
  return moved;
}

void ContextTransports::arm() {
  for (const auto& each : all_)
    if (each->open.load(std::memory_order_acquire)) each->transport->arm();
}

void ContextTransports::disarm() {
  for (const auto& each : all_)
    if (each->open.load(std::memory_order_acquire)) each->transport->disarm();
}

void ContextTransports::await(int milliseconds) {
  std::array<epoll_event, 4> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds);
  for (int i = 0; i < count; ++i)
    if (events[static_cast<std::size_t>(i)].data.u64 == kWakeup) wakeup_->drain();
}

}  // namespace seto

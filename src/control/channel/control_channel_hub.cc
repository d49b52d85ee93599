#include "src/control/wire_hub.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {

Result<std::unique_ptr<WireHub>> WireHub::create(ControlThread& control, FrontDoor& door, const LivenessSettings& settings) {
  std::unique_ptr<WireHub> hub(new WireHub(control, door));
  WireHub* const raw = hub.get();
  SETO_ASSIGN(raw->pulse_, Pulse::create(control, settings, [raw] { raw->beat(); }));
  raw->call_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!raw->call_.valid()) return socket_failure("cannot keep control connections");
  SETO_ASSIGN(raw->called_, control.add(raw->call_.get(), EPOLLIN, [raw](std::uint32_t) { raw->attend(); }));
  door.greet(kPurposeControl, [raw](const VisitKey& caller, PrivateFd socket) { raw->welcome(caller, std::move(socket)); });
  door.hear_declines([raw](AttemptId attempt, ContextId mine, const Status& reason) { raw->decline(attempt, mine, reason); });
  return hub;
}

WireHub::~WireHub() {
  if (generation_ != fork_generation()) return;
  door_.hear_declines({});
  door_.greet(kPurposeControl, {});
  {
    std::map<Union, std::shared_ptr<TcpWire>> proposed;
    std::unique_lock lock(mutex_);
    proposed.swap(proposed_);
    lock.unlock();
  }
  {
    // The control thread may be the last that holds one, in a handler.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return alive_ == 0; });
  }
  called_.remove();
  pulse_.reset();
  std::deque<Lingering> lingering;  // its handlers take the mutex
  const std::lock_guard lock(mutex_);
  lingering.swap(lingering_);
}

void WireHub::made() {
  const std::lock_guard lock(mutex_);
  ++alive_;
}

// Notified under the lock: who waits for it may destroy this.
void WireHub::gone() {
  const std::lock_guard lock(mutex_);
  --alive_;
  changed_.notify_all();
}

void WireHub::enter(const std::shared_ptr<TcpWire>& wire) {
  const std::lock_guard lock(mutex_);
  std::erase_if(wires_, [](const auto& one) { return one.expired(); });
  if (wires_.empty()) pulse_->start();
  wires_.push_back(wire);
}

void WireHub::needs_attention(std::weak_ptr<TcpWire> wire) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(wire));
  }
  static_cast<void>(eventfd_write(call_.get(), 1));
}

void WireHub::attend() {
  eventfd_t calls = 0;
  static_cast<void>(eventfd_read(call_.get(), &calls));
  std::vector<std::weak_ptr<TcpWire>> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& weak : waiting)
    if (const auto wire = weak.lock()) wire->attend();
}

void WireHub::beat() {
  std::vector<std::shared_ptr<TcpWire>> wires;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wires_, [](const auto& one) { return one.expired(); });
    if (wires_.empty()) pulse_->stop();
    for (const auto& weak : wires_)
      if (auto wire = weak.lock()) wires.push_back(std::move(wire));
  }
  for (const auto& wire : wires)
    if (wire->live()) wire->beat();
}

// Whoever waits for an agreement on it waits in vain.
void WireHub::ended(const TcpWire& wire) {
  std::vector<std::shared_ptr<TcpWire>> dropped;
  const std::lock_guard lock(mutex_);
  for (auto entry = proposed_.begin(); entry != proposed_.end();) {
    const bool its = entry->second.get() == &wire;
    if (its) dropped.push_back(std::move(entry->second));
    entry = its ? proposed_.erase(entry) : std::next(entry);
  }
  changed_.notify_all();
}

// So many at most; who waits longest is closed at once, and its peer may take the end for a death.
void WireHub::linger(PrivateFd socket) {
  constexpr std::size_t kLingeringLimit = 64;
  shutdown(socket.get(), SHUT_WR);
  Lingering one;
  Lingering oldest;
  std::unique_lock lock(mutex_);
  one.id = next_id_++;
  auto watch = control_.watch(socket.get(), [this, id = one.id] {
    Lingering done;
    const std::lock_guard held(mutex_);
    const auto found = std::find_if(lingering_.begin(), lingering_.end(), [id](const Lingering& each) { return each.id == id; });
    if (found == lingering_.end()) return;
    done = std::move(*found);
    lingering_.erase(found);
  });
  if (!watch.ok()) return;
  one.socket = std::move(socket);
  one.watch = std::move(watch).value();
  lingering_.push_back(std::move(one));
  if (lingering_.size() <= kLingeringLimit) return;
  oldest = std::move(lingering_.front());
  lingering_.pop_front();
  lock.unlock();  // its handler may be waiting for it
}

}  // namespace seto

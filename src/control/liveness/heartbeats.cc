#include "src/control/liveness/heartbeats.h"

#include <mutex>

namespace seto {
namespace {

// The one of this process; never destroyed, for the reason in control_process.cc.
std::atomic<Heartbeats*> present_heartbeats{nullptr};

// The state of one watch; used by the control thread only.
struct Watched {
  LastReceived last_received;
  std::uint64_t last = 0;
  bool told = false;
};

}  // namespace

Heartbeats::Registration& Heartbeats::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    remove();
    owner_ = std::exchange(other.owner_, nullptr);
    id_ = other.id_;
    counter_ = std::exchange(other.counter_, nullptr);
  }
  return *this;
}

void Heartbeats::Registration::remove() {
  Heartbeats* const owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  owner->callbacks_.remove(id_);
  if (counter_ != nullptr && !process_was_forked()) counter_->store(0, std::memory_order_relaxed);
}

Result<Heartbeats*> Heartbeats::of_process(const LivenessSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  if (Heartbeats* const one = present_heartbeats.load(std::memory_order_acquire)) return one;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Heartbeats* const one = present_heartbeats.load(std::memory_order_acquire)) return one;
  SETO_ASSIGN(auto one, create(*control, settings));
  present_heartbeats.store(one.get(), std::memory_order_release);
  return one.release();
}

Result<std::unique_ptr<Heartbeats>> Heartbeats::create(ControlThread& control, const LivenessSettings& settings) {
  std::unique_ptr<Heartbeats> one(new Heartbeats);
  Heartbeats* const raw = one.get();
  SETO_ASSIGN(raw->timer_, HeartbeatTimer::create(control, settings, [raw] { raw->tick(); }));
  return one;
}

Heartbeats::Registration Heartbeats::beat(std::atomic<std::uint64_t>& counter) {
  if (!timer_->on()) return {};
  counter.store(1, std::memory_order_relaxed);
  return add([&counter] { counter.fetch_add(1, std::memory_order_relaxed); }, &counter);
}

Heartbeats::Registration Heartbeats::watch(const std::atomic<std::uint64_t>& counter, OnSilence on_silence) {
  if (!timer_->on()) return {};
  const auto watched = std::make_shared<Watched>(Watched{LastReceived(timer_->time())});
  return add(
      [this, &counter, watched, tell = std::move(on_silence)] {
        const std::uint64_t now = counter.load(std::memory_order_relaxed);
        if (watched->told) return;
        if (now == 0 || now != watched->last) watched->last_received.update(timer_->time());
        watched->last = now;
        const std::uint64_t silent_ns = watched->last_received.age_ns(timer_->time());
        if (silent_ns <= timer_->timeout_ns()) return;
        watched->told = true;
        tell("its process " + silence_text(silent_ns));
      },
      nullptr);
}

Heartbeats::Registration Heartbeats::add(std::function<void()> each_beat, std::atomic<std::uint64_t>* counter) {
  const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(callbacks_.add(id, std::move(each_beat)));
  timer_->start();
  return {this, id, counter};
}

void Heartbeats::tick() {
  std::vector<std::uint64_t> ids = callbacks_.keys();
  if (ids.empty()) {
    timer_->stop();
    ids = callbacks_.keys();  // a registration added in between has already started the timer
    if (!ids.empty()) timer_->start();
  }
  for (const std::uint64_t id : ids) callbacks_.run(id, [](const std::function<void()>& each_beat) { each_beat(); });
}

}  // namespace seto

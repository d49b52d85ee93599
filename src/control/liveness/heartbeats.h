#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "src/base/result.h"
#include "src/control/callback_registry.h"
#include "src/control/control_thread.h"
#include "src/control/liveness/peer_liveness.h"

namespace seto {

// Signs of life between processes that share memory: a counter that the owner's control thread advances each interval, and that
// others look at in the same rhythm. A process that has ended is noticed otherwise, and at once; this finds the frozen ones.
class Heartbeats final {
 public:
  // Something in place. Ending it waits until its callback is not running (unless that is who ends it).
  class Registration final {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_), counter_(std::exchange(other.counter_, nullptr)) {}
    Registration& operator=(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { remove(); }
    void remove();

   private:
    friend class Heartbeats;
    Registration(Heartbeats* owner, std::uint64_t id, std::atomic<std::uint64_t>* counter)
        : owner_(owner), id_(id), counter_(counter) {}
    Heartbeats* owner_ = nullptr;
    std::uint64_t id_ = 0;
    std::atomic<std::uint64_t>* counter_ = nullptr;  // of beat()
  };

  // The first caller's settings hold. With a heartbeat of 0 nothing beats and nobody is watched.
  static Result<Heartbeats*> of_process(const LivenessSettings& settings);
  // `control` outlives the result, which outlives its registrations.
  static Result<std::unique_ptr<Heartbeats>> create(ControlThread& control, const LivenessSettings& settings);
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // Advances the counter until the result ends, which leaves it at 0: no sign of life is to be expected. Any thread.
  [[nodiscard]] Registration beat(std::atomic<std::uint64_t>& counter);

  // Calls back once, on the control thread with no lock held, when the counter has stood still for too long: "its process gave no
  // sign of life for ...". Not while it is 0. Any thread.
  using OnSilence = std::function<void(const std::string& why)>;
  [[nodiscard]] Registration watch(const std::atomic<std::uint64_t>& counter, OnSilence on_silence);

 private:
  Heartbeats() = default;
  [[nodiscard]] Registration add(std::function<void()> each_beat, std::atomic<std::uint64_t>* counter);
  void tick();

  CallbackShelf<std::uint64_t, std::function<void()>> shelf_;
  std::atomic<std::uint64_t> next_id_{1};
  std::unique_ptr<Pulse> pulse_;  // last: its handler uses the rest
};

}  // namespace seto

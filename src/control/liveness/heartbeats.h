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

// Heartbeats between processes that share memory: the owner's control thread advances a counter each interval, and other
// processes read it at the same interval. This detects frozen processes; the end of a process is detected at once by its socket.
class Heartbeats final {
 public:
  // Keeps a beat or a watch in place. Ending it waits until its callback is not running (unless the callback itself ends it).
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
    std::atomic<std::uint64_t>* counter_ = nullptr;  // set by beat()
  };

  // The settings of the first call are used. With a heartbeat of 0 no counter advances and no process is watched.
  static Result<Heartbeats*> of_process(const LivenessSettings& settings);
  // `control` outlives the result, which outlives its registrations.
  static Result<std::unique_ptr<Heartbeats>> create(ControlThread& control, const LivenessSettings& settings);
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // Advances the counter until the registration ends, which sets it to 0: no more heartbeats are expected. Any thread.
  [[nodiscard]] Registration beat(std::atomic<std::uint64_t>& counter);

  // Calls back once, on the control thread with no lock held, when the counter has not changed for the timeout: "its process gave
  // no sign of life for ...". Never while the counter is 0. Any thread.
  using OnSilence = std::function<void(const std::string& why)>;
  [[nodiscard]] Registration watch(const std::atomic<std::uint64_t>& counter, OnSilence on_silence);

 private:
  Heartbeats() = default;
  [[nodiscard]] Registration add(std::function<void()> each_beat, std::atomic<std::uint64_t>* counter);
  void tick();

  CallbackRegistry<std::uint64_t, std::function<void()>> callbacks_;
  std::atomic<std::uint64_t> next_id_{1};
  std::unique_ptr<HeartbeatTimer> timer_;  // last: its handler uses the other members
};

}  // namespace seto

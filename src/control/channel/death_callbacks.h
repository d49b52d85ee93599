#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "src/control/callback_registry.h"
#include "src/control/channel/control_channels.h"

namespace seto {

// The death callbacks of all channels.
using DeathCallbacks = CallbackRegistry<std::uint64_t, std::function<void()>>;

// A callback that is registered under a number of its own while the object exists.
class DeathCallback final : public ControlChannel::OnDeath {
 public:
  DeathCallback(DeathCallbacks& deaths, std::function<void()> callback) : deaths_(deaths), id_(next_id()) {
    static_cast<void>(deaths_.add(id_, std::move(callback)));
  }
  DeathCallback(const DeathCallback&) = delete;
  DeathCallback& operator=(const DeathCallback&) = delete;
  ~DeathCallback() override { deaths_.remove(id_); }

  [[nodiscard]] std::uint64_t id() const { return id_; }

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  DeathCallbacks& deaths_;
  const std::uint64_t id_;
};

}  // namespace seto

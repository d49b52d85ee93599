#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/control/network/tcp_connector.h"
#include "src/control/channel/message_handlers.h"
#include "src/control/liveness/peer_liveness.h"

namespace seto {

// Of one news, or one answer.
inline constexpr std::size_t kNewsLimit = 4'000;

// The control connection to another process of the job, shared by all who talk to it. The control thread drives it; all calls
// from any thread, none blocks. Lives while somebody holds it; its end is told to the other side, which then does not take it for
// dead.
class Wire {
 public:
  virtual ~Wire() = default;

  // The other process has ended, or has given no sign of life for too long. Never goes back.
  [[nodiscard]] virtual const std::atomic<bool>& dead() const = 0;
  // "its process has ended", "its process gave no sign of life for 5.0 s (SETO_LIVENESS_TIMEOUT_MS)", ...; empty while it lives.
  [[nodiscard]] virtual std::string why() const = 0;

  // In place until destroyed, which waits for the callback to end (unless that is who destroys it).
  class OnDeath {
   public:
    virtual ~OnDeath() = default;
  };
  // Called once, on the control thread, no lock held; soon, if it is dead already.
  [[nodiscard]] virtual std::unique_ptr<OnDeath> on_death(std::function<void()> callback) = 0;

  // Has the mailbox (key, to_member) of the other process say its answer to the mailbox (key, from_member) of this one. Where
  // much waits to be sent, a question or its answer is dropped: ask again.
  virtual void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) = 0;
  // To the mailbox (key, to_member) of the other process; at most kNewsLimit bytes. In order.
  virtual void news(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) = 0;
};

// The wires of this process: one for each other process and key.
class Wires {
 public:
  // Of the process's front door; the first caller's settings hold.
  static Result<Wires*> of_process(FrontDoor& door, const LivenessSettings& settings);
  // `door` and its control thread outlive the result, which outlives its wires.
  static Result<std::unique_ptr<Wires>> create(ControlThread& control, FrontDoor& door, const LivenessSettings& settings);
  virtual ~Wires() = default;

  // As FrontDoor::meet, with its guarantees and texts: both contexts call it, and both get their end of one wire, an old one if
  // there is. The purpose of the visit does not matter. Holds the key admitted until it returns, and no longer.
  [[nodiscard]] virtual Result<std::shared_ptr<Wire>> meet(const Visit& visit) = 0;

  [[nodiscard]] virtual Mailboxes& mailboxes() = 0;
};

}  // namespace seto

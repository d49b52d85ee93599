#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/door_address.h"
#include "src/control/key_ring.h"
#include "src/control/visit.h"

namespace seto {

class Porch;
class Visitors;

// Where this process listens: the texts of SETO_INTERFACE and SETO_PORTS.
struct DoorSettings {
  std::string interfaces;
  std::string ports;
  bool operator==(const DoorSettings&) const = default;
};

// Where contexts of this process meet contexts of processes on other machines, over TCP: one listener for all, on the control
// thread. Whoever comes proves that it has the key of a job that this process is in (src/net/membership.h) before anything else
// is heard. Any thread, several pairs at once.
class FrontDoor final {
 public:
  // Opened by the first call; a later one with other settings gets the open one, and one line in the log says so.
  static Result<FrontDoor*> of_process(const DoorSettings& settings);
  // `control` outlives the result.
  static Result<std::unique_ptr<FrontDoor>> create(ControlThread& control, const DoorSettings& settings);
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;
  ~FrontDoor();

  // To be gathered by all ranks: process, library and every address to try. Nothing in it is secret.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const DoorAddress& self() const { return self_; }

  // From now on, while the result lives, connections under this key are heard. To be held as soon as the key is known, and for as
  // long as peers may call: who calls under a key that is not there (yet) is kept waiting for 2 s and calls again. Several may
  // hold the same key.
  [[nodiscard]] Admission admit(const Secret& key) { return keys_.admit(key); }

  // Both sides call it, each with the other's address and the contexts swapped; blocks until the other did. The smaller of
  // (process, context) calls and the other answers. A thread with several peers takes the pairs in an order that all ranks share,
  // or ranks wait for each other in a circle. Failures say "its process ..."; the caller prepends which rank that is.
  // Code::aborted: the other side has declined, and the text is its reason. The socket is non-blocking, and what follows the
  // handshake is unread.
  [[nodiscard]] Result<PrivateFd> meet(const Visit& visit);

  // This context meets nobody any more in this attempt: whoever waits for it, or will, gets the reason as Code::aborted.
  // Needs no descriptor.
  void decline(AttemptId attempt, ContextId mine, const Status& reason);

  // The rest is for Wires, which shares its connections.

  // Callers of that purpose are not parked for a context but accepted and given to this handler: on the control thread, no lock
  // held. An attempt that was declined is refused as ever. One for each purpose; an empty one ends it, and none runs after that.
  using Greeter = std::function<void(const VisitKey& caller, PrivateFd socket)>;
  void greet(std::uint8_t purpose, Greeter greeter);
  // Of meet(): which it would do, and the half of who calls.
  [[nodiscard]] Result<bool> calls(const Visit& visit) const;
  [[nodiscard]] Result<PrivateFd> call(const Visit& visit);
  // The reason with which an attempt of this process was declined.
  [[nodiscard]] std::optional<Status> declined(AttemptId attempt, ContextId mine) const;

 private:
  explicit FrontDoor(ControlThread& control);
  [[nodiscard]] Result<DoorAddress> remote_of(const Visit& visit) const;
  [[nodiscard]] Result<PrivateFd> answer(const Visit& visit, const DoorAddress& remote);

  ControlThread& control_;
  const std::uint32_t generation_ = fork_generation();
  DoorAddress self_;
  std::string address_;
  KeyRing keys_;
  std::unique_ptr<Visitors> visitors_;
  std::unique_ptr<Porch> porch_;
  std::mutex mutex_;
  std::map<Token, SocketAddress> found_;  // which address of a process did
};

}  // namespace seto

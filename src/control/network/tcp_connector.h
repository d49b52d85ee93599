#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/network/reached_addresses.h"
#include "src/control/control_thread.h"
#include "src/control/network/listen_address.h"
#include "src/control/network/job_keys.h"
#include "src/control/network/connect_request.h"

namespace seto {

class Inquiry;
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
  // Needs no descriptor. The key stays admitted for as long as the attempt is remembered: who asks for it must be heard.
  void decline(AttemptId attempt, ContextId mine, const Secret& key, const Status& reason);

  // The rest is for Wires, which shares its connections.

  // Callers of that purpose are not parked for a context but accepted and given to this handler: on the control thread, no lock
  // held. An attempt that was declined is refused as ever. One for each purpose; an empty one ends it, and none runs after that.
  using Greeter = std::function<void(const VisitKey& caller, PrivateFd socket)>;
  void greet(std::uint8_t purpose, Greeter greeter);

  // A visit with what its address says.
  struct Plan {
    Visit visit;
    DoorAddress remote;
    bool calls = false;  // this side does
    Claim claim;
  };
  [[nodiscard]] Result<Plan> plan(const Visit& visit) const;
  // Of meet(), the half of who calls.
  [[nodiscard]] Result<PrivateFd> call(const Plan& plan);
  // For who waits to be called: finds out now and then whether that will be.
  [[nodiscard]] std::unique_ptr<Inquiry> inquire(const Plan& plan);
  // Called with each attempt that is declined from now on, before decline() returns, by who declines. An empty one ends it.
  using DeclineListener = std::function<void(AttemptId attempt, ContextId mine, const Status& reason)>;
  void hear_declines(DeclineListener listener);
  // The reason with which an attempt of this process was declined.
  [[nodiscard]] std::optional<Status> declined(AttemptId attempt, ContextId mine) const;

 private:
  FrontDoor();
  [[nodiscard]] Result<PrivateFd> answer(const Plan& plan);

  const std::uint32_t generation_ = fork_generation();
  DoorAddress self_;
  std::string address_;
  KeyRing keys_;
  std::unique_ptr<Visitors> visitors_;
  std::unique_ptr<Porch> porch_;
  AddressBook book_;
  std::mutex listener_mutex_;
  DeclineListener decline_listener_;
};

}  // namespace seto

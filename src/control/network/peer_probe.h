#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/control/network/reached_addresses.h"
#include "src/control/network/dialer.h"
#include "src/control/network/tcp_connector.h"

namespace seto {

// Whether a call that is awaited will come: a process that has died leaves nothing that hangs up, so it is asked now and then.
// Silence is no answer. Not thread safe.
class Inquiry final {
 public:
  Inquiry(const FrontDoor::Plan& plan, AddressBook& book);

  // How long to wait for the call before step().
  [[nodiscard]] int patience_ms() const;
  // Asks, or looks for the answer, without waiting. Fails with why no call will come.
  [[nodiscard]] Status step();
  // Why the process could not even be asked, the last time.
  [[nodiscard]] const std::string& doubts() const { return doubts_; }

 private:
  [[nodiscard]] Status ask();
  void rest();

  const DoorAddress remote_;
  const Secret key_;
  Claim claim_;
  AddressBook& book_;
  std::optional<Dial> dial_;
  Deadline dial_until_ = Deadline::never();
  Deadline next_;
  int interval_ms_;
  std::optional<Deadline> given_up_at_;  // so far nobody was there, or knew the key: this long that may be too early
  std::string doubts_;
};

}  // namespace seto

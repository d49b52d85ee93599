#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/control/network/dialer.h"
#include "src/control/network/reached_addresses.h"
#include "src/control/network/tcp_connector.h"

namespace seto {

// Asks the process of an awaited caller from time to time whether its connection will come: if that process has died, there is no
// socket whose end would be noticed. A probe without an answer proves nothing. Not thread safe.
class PeerProbe final {
 public:
  PeerProbe(const TcpConnector::Plan& plan, ReachedAddresses& reached);

  // How long to wait for the connection before step().
  [[nodiscard]] int wait_ms() const;
  // Sends a probe or reads its answer, without waiting. Fails if no connection will come; the text says why.
  [[nodiscard]] Status step();
  // Why the last probe did not reach the process; empty if it did.
  [[nodiscard]] const std::string& last_failure() const { return last_failure_; }

 private:
  [[nodiscard]] Status ask();
  void schedule_next();

  const ListenAddress remote_;
  const Secret key_;
  const TlsChoice tls_;
  const bool neither_accepts_;
  Claim claim_;
  ReachedAddresses& reached_;
  std::optional<Dialer> dialer_;
  Deadline dial_until_ = Deadline::never();
  Deadline next_;
  int interval_ms_;
  std::optional<Deadline> given_up_at_;  // set while the process does not listen or lacks the key
  std::string last_failure_;
};

}  // namespace seto

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/network/connect_request.h"
#include "src/control/network/job_keys.h"
#include "src/net/tls/auth_channel.h"

namespace seto {

// Authenticated connections: each is parked without a verdict until the answering context takes it or declines its attempt. The
// limits are those of local_listener.h.
class AcceptedPeers final {
 public:
  using AcceptHandler = std::function<void(const ConnectKey& caller, SecureStream socket)>;

  // An authenticated connection whose verdict is not sent yet.
  struct AcceptedPeer {
    AnswererChannel channel;
    bool on_reserve = false;  // its descriptor is the reserve: none other is free
  };

  explicit AcceptedPeers(ControlThread& control) : control_(control) {}
  AcceptedPeers(const AcceptedPeers&) = delete;
  AcceptedPeers& operator=(const AcceptedPeers&) = delete;
  ~AcceptedPeers();

  // On the control thread, no lock held.
  void add(const KeyId& key, AcceptedPeer peer);
  // Accepts the connection of that caller and returns its socket; Code::timeout if none arrives by `until`. Any thread.
  [[nodiscard]] Result<SecureStream> take(const ConnectKey& key, Deadline until);
  struct Attempt {
    AttemptId attempt;
    ContextId context;
    auto operator<=>(const Attempt&) const = default;
  };
  // The admission is held for as long as the attempt is remembered.
  void decline(const Attempt& attempt, Admission admission, const Status& reason);
  [[nodiscard]] std::optional<Status> declined(const Attempt& attempt) const;
  void set_accept_handler(std::uint8_t purpose, AcceptHandler accept_handler);

 private:
  struct Parked {
    std::uint64_t id = 0;
    AcceptedPeer peer;
    Watch watch;
  };
  struct Declined {
    Status reason;
    Admission admission;
  };
  // Returns true if it refused the connection or answered a probe.
  bool refuse_if_due(const ConnectKey& key, AcceptedPeer& peer);
  void park(const ConnectKey& key, AcceptedPeer peer);
  void forget(std::uint64_t id);

  ControlThread& control_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable handler_done_;
  std::uint64_t next_id_ = 1;
  std::map<ConnectKey, Parked> parked_;
  std::set<ConnectKey> refused_;  // refused because no descriptor was free
  std::map<Attempt, Declined> declined_;
  std::deque<Attempt> declined_order_;  // oldest first
  std::map<std::uint8_t, std::shared_ptr<const AcceptHandler>> accept_handlers_;
  bool handler_running_ = false;
};

}  // namespace seto

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
#include <string_view>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/network/job_keys.h"
#include "src/control/network/connect_request.h"
#include "src/net/auth_handshake.h"

namespace seto {

// All of `bytes` at once, into a socket whose buffer has room because little was ever sent on it.
[[nodiscard]] bool send_whole(int fd, std::string_view bytes);

// Members that have called: each waits for the verdict until its context asks for it, or gives up. Limits as in reception.h.
class Visitors final {
 public:
  using Greeter = std::function<void(const VisitKey& caller, PrivateFd socket)>;

  // A proven caller; its verdict is due.
  struct Guest {
    PrivateFd fd;
    AnswererHandshake handshake;
    bool on_reserve = false;  // no other descriptor is left
  };

  explicit Visitors(ControlThread& control) : control_(control) {}
  Visitors(const Visitors&) = delete;
  Visitors& operator=(const Visitors&) = delete;
  ~Visitors();

  // On the control thread, no lock held.
  void come(const KeyId& key, Guest guest);
  // Any thread. Accepts the caller; Code::timeout if it has not come by `until`.
  [[nodiscard]] Result<PrivateFd> take(const VisitKey& key, Deadline until);
  struct Attempt {
    AttemptId attempt;
    ContextId context;
    auto operator<=>(const Attempt&) const = default;
  };
  // The admission is held for as long as the attempt is remembered.
  void decline(const Attempt& attempt, Admission heard, const Status& reason);
  [[nodiscard]] std::optional<Status> declined(const Attempt& attempt) const;
  void greet(std::uint8_t purpose, Greeter greeter);

 private:
  struct Parked {
    std::uint64_t id = 0;
    Guest guest;
    Watch watch;
  };
  struct Declined {
    Status reason;
    Admission heard;
  };
  // True: it was dealt with here.
  bool refuse_if_due(const VisitKey& key, Guest& guest);
  void park(const VisitKey& key, Guest guest);
  void forget(std::uint64_t id);

  ControlThread& control_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable greeted_;
  std::uint64_t next_id_ = 1;
  std::map<VisitKey, Parked> parked_;
  std::set<VisitKey> refused_;  // for want of descriptors
  std::map<Attempt, Declined> declined_;
  std::deque<Attempt> declined_order_;  // the oldest first
  std::map<std::uint8_t, std::shared_ptr<const Greeter>> greeters_;
  bool greeting_ = false;
};

}  // namespace seto

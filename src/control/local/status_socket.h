#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"

namespace seto {

// An answer is handed to the kernel at once, which takes at least this much. So no asker can keep the control thread waiting, and
// none leaves anything behind.
inline constexpr std::size_t kLongestStatus = std::size_t{160} << 10;

// The beginning of the abstract name of each such socket. The process id and a random number follow: "seto-status.4711.9f3a01c2".
inline constexpr const char* kStatusSocketPrefix = "seto-status.";

// A local socket that tells every process of the same user what this process does: it accepts, sends one text and closes. It
// reads nothing. Served by the control thread, so it also answers while all calls are stuck; costs nothing between two questions.
class StatusSocket final {
 public:
  // `tell` is called on the control thread, with no lock held, for each asker. Its text has at most kLongestStatus bytes.
  static Result<std::unique_ptr<StatusSocket>> create(ControlThread& control, std::function<std::string()> tell);
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit StatusSocket(std::function<std::string()> tell) : tell_(std::move(tell)) {}
  void accept_some();
  [[nodiscard]] PrivateFd accept_one();
  void answer(const PrivateFd& asker) const;

  const std::function<std::string()> tell_;
  std::string name_;
  PrivateFd listener_;
  PrivateFd reserve_;  // closed to accept an asker when no other descriptor is free
  Watch watch_;        // last: its handler uses the others
};

}  // namespace seto

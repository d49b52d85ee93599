#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/control/channel/control_overlay.h"
#include "src/control/network/tcp_connector.h"
#include "transports/endpoint.h"

namespace seto::tcp {

// The part of one context in the overlay of an attempt (Attempt::relayed). The context of the process's first member connects the
// channels; all of them use them.
class AttemptOverlay final {
 public:
  struct Setup {
    TcpConnector* connector = nullptr;
    ControlChannels* channels = nullptr;
    ContextId context = 0;
    std::uint64_t patience_ms = 0;
    std::size_t at_once = 1;  // connections
  };
  // `addresses`: TcpConnector::address() by member of the attempt. The attempt outlives the result.
  static Result<AttemptOverlay> join(const Setup& setup, const Attempt& attempt, std::vector<std::string> addresses);

  // Blocks until the peers of this process have done the same.
  [[nodiscard]] Status connect(Deadline until);
  // The channel to the process of a member of the attempt.
  [[nodiscard]] std::shared_ptr<ControlChannel> channel_to(std::uint32_t member) const;
  // Until no reference to it is left, the process takes part.
  [[nodiscard]] const std::shared_ptr<ControlOverlay>& overlay() const { return overlay_; }

 private:
  AttemptOverlay(const Setup& setup, const Attempt& attempt, std::vector<std::string> addresses);
  [[nodiscard]] Result<std::shared_ptr<ControlOverlay>> join_processes();
  [[nodiscard]] Status connect_to(OverlayMember peer, Deadline until);

  Setup setup_;
  const Attempt* attempt_;
  std::vector<std::string> addresses_;
  std::vector<std::uint32_t> first_;       // by process: its first member of the attempt
  std::vector<OverlayMember> process_of_;  // by member of the attempt
  std::shared_ptr<ControlOverlay> overlay_;
};

}  // namespace seto::tcp

#pragma once

#include <memory>
#include <vector>

#include "src/base/types.h"
#include "src/control/channel/control_channels.h"
#include "src/control/overlay/overlay_graph.h"
#include "src/net/secret.h"
#include "src/net/token.h"

namespace seto {

// The processes of an attempt, in the order of their first ranks: all of them state the same.
struct ControlOverlaySetup {
  struct Member {
    Token process{};
    OverlayPlace place{};
  };
  AttemptId attempt = 0;
  Secret key;
  OverlayMember own = 0;
  std::vector<Member> members;
};

// One process's part in the control channels of an attempt where not every pair of processes has one: messages to others are
// passed on (docs/decisions/0031-control-messages-are-passed-on.md). The process takes part while a shared_ptr to this or to one
// of its channels exists. Any thread.
class ControlOverlay {
 public:
  virtual ~ControlOverlay() = default;

  // The members to which this one needs a channel of its own.
  [[nodiscard]] virtual const std::vector<OverlayMember>& peers() const = 0;
  // Once for each of them: both ends connect and attach it.
  virtual void attach(OverlayMember peer, std::shared_ptr<ControlChannel> channel) = 0;
  // The channel to any other member, with its promises; its descriptor is that of the own channel, -1 if there is none. Messages
  // wait until all members have their channels.
  [[nodiscard]] virtual std::shared_ptr<ControlChannel> channel_to(OverlayMember member) = 0;
};

}  // namespace seto

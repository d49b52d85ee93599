#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/result.h"
#include "src/net/token.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/channel_address.h"

// The messages of two contexts that set up a channel, over the control plane.
namespace seto::rdma {

// The ports of the end that does not select.
struct Offer {
  std::vector<NamedPort> ports;
  bool has_manager = false;  // it can take paths from the connection manager, and its settings say so
};
// The selecting end has made a channel, and asks for the other half at `yours`.
struct Proposal {
  std::uint32_t attempt = 0;
  ChannelAddress address;
  PortEnd yours;
  std::optional<Token> token;  // the path comes from the connection manager: the other end listens for a call with this token
};
// Where an end listens for the call of the connection manager.
struct Listener {
  Gid gid;
  std::uint16_t service = 0;
};
// The other half. Its end can be written to; with a listener, once that was called.
struct Acceptance {
  std::uint32_t attempt = 0;
  ChannelAddress address;
  std::optional<Listener> listener;
};
struct Refusal {
  std::uint32_t attempt = 0;
  std::string why;
};
enum class Verdict : std::uint8_t {
  probe = 1,  // both ends can be written to: send the first message
  use,        // first messages have arrived at both ends
  give_up,    // no candidate is left
};
struct Decision {
  std::uint32_t attempt = 0;
  Verdict verdict = Verdict::probe;
  std::string why;  // give_up
};
using SetUpMessage = std::variant<Offer, Proposal, Acceptance, Refusal, Decision>;

// Items beyond the limits are left out.
[[nodiscard]] std::string encode(const SetUpMessage& message);
// The bytes come from the peer.
[[nodiscard]] Result<SetUpMessage> decode_set_up(std::string_view bytes);

inline constexpr std::size_t kMostPorts = 64;
inline constexpr std::size_t kMostGidsOfAPort = 256;
inline constexpr std::size_t kMostPkeys = 128;
inline constexpr std::size_t kMostText = 1'000;  // bytes of a name or reason

}  // namespace seto::rdma

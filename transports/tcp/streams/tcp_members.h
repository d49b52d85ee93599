#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/wakeup.h"
#include "src/control/channel/control_channels.h"
#include "transports/peer_group_seat.h"
#include "transports/tcp/streams/ask_pace.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {

// The members of a communicator that this context reaches over TCP: their peer group, and the status records that they exchange
// over control channels, whatever their calls are doing.
class TcpMembers final : private StatusExchange {
 public:
  struct Setup {
    GroupMembers group;
    Domain* domain = nullptr;
    std::uint32_t ports = 0;               // of streams
    std::shared_ptr<const Wakeup> wakeup;  // of the own context: rung when a record has arrived
  };
  static Result<std::shared_ptr<PeerGroup>> join(Setup setup, ControlChannels& channels);
  ~TcpMembers() override;

 private:
  explicit TcpMembers(Setup setup) : setup_(std::move(setup)), pace_(setup_.group.members.size()) {}

  void ask(std::uint32_t member) override;
  void announce() override;
  void receive(std::uint32_t member, std::string_view record);

  Setup setup_;
  std::vector<AskPace> pace_;  // by member
  std::unique_ptr<TcpPeerGroup> peer_group_;
  MessageHandlers::Registration handler_;  // destroyed before the peer group
};

}  // namespace seto::tcp

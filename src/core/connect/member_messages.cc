#include "src/core/connect/member_messages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace seto {
namespace {

// The handlers of peer groups are named by the attempt itself.
constexpr std::uint64_t kOtherThanPeerGroups = 0x7261'7465'735f'6f66;

struct Head {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

}  // namespace

MemberMessages::MemberMessages(const ConnectedRanks& ranks, Receive receive)
    : key_(static_cast<std::uint64_t>(ranks.attempt) ^ kOtherThanPeerGroups), own_(ranks.rank), receive_(std::move(receive)) {
  for (const std::shared_ptr<Connection>& connection : ranks.connections)
    channels_.push_back(connection == nullptr ? nullptr : connection->control());
  const auto found = std::find_if(channels_.begin(), channels_.end(), [](const ControlChannel* one) { return one != nullptr; });
  if (found != channels_.end()) between_ = static_cast<Rank>(found - channels_.begin());
}

Result<std::unique_ptr<MemberMessages>> MemberMessages::open(const ConnectedRanks& ranks, const Config& config, Receive receive) {
  SETO_ASSIGN(TcpConnector* const connector, TcpConnector::of_process(NetworkSettings::of(config)));
  SETO_ASSIGN(ControlChannels* const channels,
              ControlChannels::of_process(*connector, {config.heartbeat_ms, config.liveness_timeout_ms}));
  std::unique_ptr<MemberMessages> messages(new MemberMessages(ranks, std::move(receive)));
  const MemberMessages* const self = messages.get();
  messages->handler_ = channels->handlers().add(
      {self->key_, static_cast<std::uint32_t>(self->own_)},
      {[] { return std::string(); }, [self](std::uint32_t from, std::string_view bytes) { self->arrived(from, bytes); }});
  return messages;
}

void MemberMessages::send(Rank to, std::string_view bytes) const {
  const bool has_channel = channels_[static_cast<std::size_t>(to)] != nullptr;
  pass(own_, to, has_channel ? to : between_, bytes);
}

void MemberMessages::pass(Rank from, Rank to, Rank through, std::string_view bytes) const {
  if (through < 0 || to == own_) return;
  const Head head{static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message.append(bytes);
  channels_[static_cast<std::size_t>(through)]->send_message(key_, static_cast<std::uint32_t>(through),
                                                             static_cast<std::uint32_t>(own_), message);
}

// A rank that has ended, or is not there yet, answers without bytes. A message is passed on once, to a rank with a channel.
void MemberMessages::arrived(std::uint32_t from, std::string_view bytes) const {
  Head head;
  if (bytes.size() < sizeof head) return;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  if (head.from >= channels_.size() || head.to >= channels_.size() || from >= channels_.size()) return;
  if (head.to == static_cast<std::uint32_t>(own_)) return receive_(static_cast<Rank>(head.from), bytes);
  if (head.from == from && channels_[head.to] != nullptr)
    pass(static_cast<Rank>(head.from), static_cast<Rank>(head.to), static_cast<Rank>(head.to), bytes);
}

}  // namespace seto

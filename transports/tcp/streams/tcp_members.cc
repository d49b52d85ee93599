#include "transports/tcp/streams/tcp_members.h"

#include <string>

#include "src/base/clock.h"
#include "transports/tcp/link/tcp_connection.h"

namespace seto::tcp {
namespace {

// Null: that member is not reached over TCP.
TcpConnection* connection_of(const GroupMember& member) { return static_cast<TcpConnection*>(member.connection.get()); }

}  // namespace

Result<std::shared_ptr<PeerGroup>> TcpMembers::join(Setup setup, ControlChannels& channels) {
  std::shared_ptr<TcpMembers> members(new TcpMembers(std::move(setup)));
  TcpMembers* const self = members.get();
  const GroupMembers& group = self->setup_.group;
  PeerGroupSetup peer_group;
  peer_group.own = group.own;
  peer_group.number = group.attempt;
  peer_group.domain = self->setup_.domain;
  peer_group.exchange = self;
  peer_group.ports = self->setup_.ports;
  peer_group.called = "rank";
  for (const GroupMember& one : group.members)
    peer_group.links.push_back(one.connection == nullptr ? nullptr : connection_of(one)->link());
  SETO_ASSIGN(self->peer_group_, TcpPeerGroup::create(std::move(peer_group)));
  self->handler_ = channels.handlers().add(
      {group.attempt, group.own}, {[self] { return self->peer_group_->record(); },
                                   [self](std::uint32_t member, std::string_view record) { self->receive(member, record); }});
  return std::shared_ptr<PeerGroup>(members, self->peer_group_.get());
}

TcpMembers::~TcpMembers() { handler_.remove(); }

// A record that cannot be decoded is ignored; the streams will report what is wrong with that peer.
void TcpMembers::receive(std::uint32_t member, std::string_view record) {
  const std::uint64_t before = member < pace_.size() ? peer_group_->renewals(member) : 0;
  if (record.empty())
    peer_group_->lose(member);
  else
    (void)peer_group_->renew(member, record);
  if (member < pace_.size()) pace_[member].hear(record.empty() || peer_group_->renewals(member) != before);
  setup_.wakeup->ring();
}

void TcpMembers::ask(std::uint32_t member) {
  TcpConnection* const connection = connection_of(setup_.group.members[member]);
  if (connection == nullptr) return;
  if (!pace_[member].asks(monotonic_ns(), peer_group_->completed(), AskPace::longest_pause_ns(pace_.size()))) return;
  connection->channel().ask(setup_.group.attempt, member, setup_.group.own);
}

void TcpMembers::announce() {
  const std::string record = peer_group_->record();
  for (std::uint32_t member = 0; member < setup_.group.members.size(); ++member)
    if (TcpConnection* const connection = connection_of(setup_.group.members[member]))
      connection->channel().send_message(setup_.group.attempt, member, setup_.group.own, record);
}

}  // namespace seto::tcp

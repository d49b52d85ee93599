#include "transports/slots/slot_peer_group.h"

#include <algorithm>
#include <bit>

#include "transports/slots/pair_streams.h"
#include "transports/slots/slot_streams.h"

namespace seto::slots {

Result<std::unique_ptr<SlotPeerGroup>> SlotPeerGroup::create(PeerGroupSetup setup) {
  const BoardLayout layout(static_cast<std::uint32_t>(setup.members.size()), setup.ports);
  if (setup.own >= setup.members.size())
    return seto::failure(Code::invalid_argument, "%s %u is not in a group of %zu", setup.called, setup.own, setup.members.size());
  const auto is_within = [](const Member& member, std::size_t offset, std::size_t size) {
    return offset % kLineSize == 0 && size <= member.segment_size && offset <= member.segment_size - size;
  };
  for (std::size_t i = 0; i < setup.members.size(); ++i) {
    const Member& member = setup.members[i];
    if (!is_within(member, member.status_lines, sizeof(StatusLines)))
      return seto::failure(Code::remote_error, "%s %zu: its status lines at offset %zu are not within its segment of %zu bytes",
                           setup.called, i, member.status_lines, member.segment_size);
    if (!is_within(member, member.board, layout.size()))
      return seto::failure(Code::remote_error, "%s %zu: its board at offset %zu is not within its segment of %zu bytes",
                           setup.called, i, member.board, member.segment_size);
  }
  return std::unique_ptr<SlotPeerGroup>(new SlotPeerGroup(std::move(setup)));
}

SlotPeerGroup::SlotPeerGroup(PeerGroupSetup setup)
    : boards_(std::move(setup)), status_(boards_), leases_(boards_, status_), done_by_(members(), 0) {
  for (std::uint32_t member = 0; member < members(); ++member)
    if (member != boards_.own()) others_.push_back(member);
  constexpr std::size_t kStreams = 2;  // that most plans have for each peer
  const std::size_t room = boards_.setup().room_to_move_on / (kStreams * kWindow * std::max<std::size_t>(1, others_.size()));
  room_of_lease_ = std::bit_floor(room);  // the pool leases powers of two
}

// If the messages of a stream fill much of a cache they do, so that the next operation can use the same slots: this halves the
// memory and the share of the caches (1 MiB between 2 near ranks: 57.5 -> 49.3 us; 4 MiB between 4 ranks: 737 -> 574 us). For a
// shorter stream the report costs more than it saves: one flight of a cache line, where headers of the other direction carry
// credit at no cost (64 KiB: 3.6 -> 4.1 us). A longer stream whose slots can move on does better by that (512 KiB between 2 near
// ranks: 50 -> 34 us). Members that think differently of it lose time, and nothing else: see free_again.
bool SlotPeerGroup::gives_every_slot_back(std::uint64_t slices, std::uint64_t stride) const {
  constexpr std::uint64_t kMuch = 256 << 10;
  return slices * stride >= kMuch && 2 * slices * stride >= room_of_lease_;
}

Result<std::unique_ptr<SendStream>> SlotPeerGroup::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                             const StreamGeometry& geometry) {
  if (address.port >= boards_.layout().ports() || address.group > kMostGroups)
    return seto::failure(Code::invalid_usage, "port %u or group %u is beyond the board's %u ports and %u groups", address.port,
                         address.group, boards_.layout().ports(), kMostGroups);
  const auto foreign = [this](std::uint32_t member) { return member >= members(); };
  if (receivers.empty() || (address.group == 0 && receivers.size() > 1) ||
      std::any_of(receivers.begin(), receivers.end(), foreign))
    return seto::failure(Code::invalid_usage,
                         "a stream of group %u cannot have these %zu receivers: group 0 has one, and %ss are 0 to %u",
                         address.group, receivers.size(), boards_.called(), members() - 1);
  SETO_TRY(check(geometry));
  return std::unique_ptr<SendStream>(new SlotSender(*this, address, receivers, geometry));
}

Result<std::unique_ptr<ReceiveStream>> SlotPeerGroup::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.port >= boards_.layout().ports() || address.group > kMostGroups || address.sender >= members())
    return seto::failure(Code::invalid_usage, "port %u, group %u or sender %u is beyond the board", address.port, address.group,
                         address.sender);
  SETO_TRY(check(geometry));
  return std::unique_ptr<ReceiveStream>(new SlotReceiver(*this, address, geometry));
}

Result<std::unique_ptr<PairSender>> SlotPeerGroup::open_pair_send(std::uint32_t receiver) {
  if (receiver >= members() || receiver == boards_.own())
    return seto::failure(Code::invalid_usage, "messages to %s %u: valid receivers are 0 to %u without %u", boards_.called(),
                         receiver, members() - 1, boards_.own());
  return std::unique_ptr<PairSender>(new SlotPairSender(*this, receiver));
}

Result<std::unique_ptr<PairReceiver>> SlotPeerGroup::open_pair_receive(std::uint32_t sender) {
  if (sender >= members() || sender == boards_.own())
    return seto::failure(Code::invalid_usage, "messages from %s %u: valid senders are 0 to %u without %u", boards_.called(),
                         sender, members() - 1, boards_.own());
  return std::unique_ptr<PairReceiver>(new SlotPairReceiver(*this, sender));
}

void SlotPeerGroup::depart() {
  status_.depart();
  leases_.give_back();
}

bool SlotPeerGroup::passed(std::span<const std::uint32_t> members, std::uint64_t operation) {
  for (const std::uint32_t member : members) {
    if (done_by_[member] >= operation) continue;
    learn(member, status_.completed_by(member));
    if (done_by_[member] < operation) return false;
  }
  return true;
}

}  // namespace seto::slots

#include "transports/shm/shm_seat.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/net/token.h"
#include "transports/shm/core_caches.h"
#include "transports/shm/local_process.h"
#include "transports/shm/shm_connection.h"
#include "transports/shm/user_memory.h"
#include "transports/slots/slot_peer_group.h"

namespace seto {
namespace {

std::uint64_t random_identity() {
  const Token token = random_token();
  std::uint64_t identity = 0;
  std::memcpy(&identity, token.data(), sizeof identity);
  return identity | 1;
}

Result<BoardAddress> address_of(const GroupMember& member) {
  BoardAddress address;
  if (member.seat.size() != sizeof address)
    return failure(Code::remote_error, "rank %u: its announcement of a board has %zu bytes instead of %zu", member.number,
                   member.seat.size(), sizeof address);
  std::memcpy(&address, member.seat.data(), sizeof address);
  return address;
}

ShmConnection& shm_connection_of(const GroupMember& member) { return static_cast<ShmConnection&>(*member.connection); }

// Wakes the contexts of the members that sleep.
class PeerWakeups final : public slots::Doorbell {
 public:
  explicit PeerWakeups(const std::vector<GroupMember>& members) : members_(members) {}
  void ring(std::uint32_t member) override { shm_connection_of(members_[member]).memory().wakeup->ring(); }

 private:
  const std::vector<GroupMember>& members_;
};

// A complete group with all that it uses.
struct ShmPeerGroup {
  ShmPeerGroup(GroupMembers all, Board own_board) : members(std::move(all)), board(std::move(own_board)) {}
  // A member that has neither departed nor ended may still read the board, which says why this member left.
  ~ShmPeerGroup() {
    if (!all_others_gone()) board.keep();
  }

  [[nodiscard]] bool all_others_gone() const {
    for (std::uint32_t member = 0; peer_group != nullptr && member < members.members.size(); ++member)
      if (member != members.own && !members.members[member].connection->ended() && !peer_group->status().departed(member))
        return false;
    return true;
  }

  GroupMembers members;
  Board board;
  PeerWakeups wakeups{members.members};
  std::unique_ptr<slots::SlotPeerGroup> peer_group;  // last: uses the others
};

}  // namespace

Result<std::unique_ptr<PeerGroupSeat>> ShmSeat::reserve(std::shared_ptr<const ContextMemory> memory, slots::Pool& pool,
                                                        const GroupSize& size, const NumaNodes& nodes) {
  const std::uint32_t ports = ports_of(size.ranks);
  const slots::BoardLayout layout(static_cast<std::uint32_t>(size.members), ports);
  // The status lines come first: behind a board they would keep its addresses from serving boards of other sizes.
  SETO_ASSIGN(const std::size_t status_lines, pool.reserve_status_lines());
  const Result<std::size_t> reserved = pool.reserve(layout.size());
  if (!reserved.ok()) {
    pool.give_back_status_lines(status_lines);
    return failure(reserved.status().code(), "%s (the board of a communicator of %d ranks, %d of them on this node)",
                   std::string(reserved.status().text()).c_str(), size.ranks, size.members);
  }
  const BoardAddress address{reserved.value(), status_lines, random_identity(), nodes.node_of(cores_of_thread())};
  auto& lines = *reinterpret_cast<slots::StatusLines*>(memory->segment.data() + status_lines);
  Board board(pool, lines, address, layout.size());
  lines.begin(address.identity);
  return std::unique_ptr<PeerGroupSeat>(new ShmSeat(std::move(memory), pool, nodes, ports, std::move(board)));
}

std::string ShmSeat::announcement() const { return {reinterpret_cast<const char*>(&board_.address()), sizeof(BoardAddress)}; }

Result<std::shared_ptr<PeerGroup>> ShmSeat::join(GroupMembers members) {
  static const CoreCaches caches = core_caches();  // in a virtual machine each question leaves it
  slots::PeerGroupSetup setup;
  setup.own = members.own;
  setup.ports = ports_;
  setup.pool = &pool_;
  setup.room_to_move_on = room_to_move_on(caches, members.members.size(), members.ranks_per_core);
  setup.called = "rank";
  setup.lendable = &UserMemory::lendable();
  for (std::uint32_t index = 0; index < members.members.size(); ++index) {
    const GroupMember& one = members.members[index];
    slots::Member member;
    SETO_ASSIGN(const BoardAddress address, address_of(one));
    member.board = address.board;
    member.status_lines = address.status_lines;
    member.identity = address.identity;
    if (const auto node = static_cast<int>(address.node); nodes_.has(node)) member.node = node;
    const ContextMemory* memory = memory_.get();
    if (index != members.own) {
      ShmConnection& connection = shm_connection_of(one);
      memory = &connection.memory();
      member.armed = &memory->head().armed;
      member.same_process = connection.reach() == Reach::process;
      member.dead = &connection.ended_flag();
      member.frozen = &connection.frozen_flag();
      if (connection.local_process() != nullptr) member.partner = &connection.local_process()->lending();
    }
    member.departures = &memory->head().departures;
    member.segment = memory->segment.data();
    member.segment_size = memory->segment.size();
    setup.members.push_back(member);
    setup.numbers.push_back(one.number);
  }
  const auto whole = std::make_shared<ShmPeerGroup>(std::move(members), std::move(board_));
  setup.doorbell = &whole->wakeups;
  SETO_ASSIGN(whole->peer_group, slots::SlotPeerGroup::create(std::move(setup)));
  return std::shared_ptr<PeerGroup>(whole, whole->peer_group.get());
}

}  // namespace seto

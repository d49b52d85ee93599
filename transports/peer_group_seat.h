#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "transports/connection.h"
#include "transports/peer_group.h"

namespace seto {

struct GroupSize {
  int members = 1;
  int ranks = 1;  // of the communicator: its plans number the ports of streams
};

// A member of a peer group that is being made.
struct GroupMember {
  std::shared_ptr<Connection> connection;  // null: this member, or one that another transport connects
  std::string seat;                        // its PeerGroupSeat::announcement()
  std::uint32_t number = 0;                // in texts and fates: users know it as a rank
};

// All members in the same order at each of them.
struct GroupMembers {
  AttemptId attempt = 0;
  std::uint32_t own = 0;
  std::vector<GroupMember> members;
  double ranks_per_core = 1;  // of the communicator, on the machine where it is highest
};

// The resources that a context prepares for a peer group before it is connected to the other members. The destructor gives back
// what no group has taken over.
class PeerGroupSeat {
 public:
  virtual ~PeerGroupSeat() = default;

  // Opaque bytes for the other members.
  [[nodiscard]] virtual std::string announcement() const = 0;
  // Makes the group. At most one call, when all members are connected and have exchanged their announcements. The group keeps the
  // connections open.
  [[nodiscard]] virtual Result<std::shared_ptr<PeerGroup>> join(GroupMembers members) = 0;
};

}  // namespace seto

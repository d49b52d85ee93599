#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/api/support/handles.h"
#include "src/bootstrap/providers/in_process.h"
#include "src/bootstrap/unique_id.h"

namespace seto {
struct InheritedRates;
}

namespace seto::api {

// How the ranks of a new communicator find each other.
struct Rendezvous {
  UniqueIdBytes id{};
  std::shared_ptr<InProcessHub> hub;  // used in place of the id
};

// A handle whose communicator has not been made, and which the user does not have yet.
std::shared_ptr<setoComm> new_handle(Rank rank, int ranks, Settings settings);
Status make(setoComm& comm, const Rendezvous& rendezvous);
// Makes the communicator over this bootstrap. `given_up`: see CommunicatorOptions. `inherited`: of the parent of a split, or
// null.
Status make_communicator(setoComm& comm, Bootstrap& bootstrap, const std::atomic<bool>& given_up,
                         const InheritedRates* inherited = nullptr);
inline constexpr Rank kUnknownRank = -1;
// Logs why this rank got no communicator, and returns the status: a job's log says that also where the program does not. `ranks`:
// 0 where it is not known.
Status logged_init(Rank rank, int ranks, const Status& status);
void hand_over(const std::shared_ptr<setoComm>& comm, setoComm_t* where);

// Runs work that blocks until other ranks do theirs: at once, or at the end of an open group, in parallel with the work of this
// thread's other ranks.
Status now_or_at_group_end(std::function<Status()> work);

// Runs each function on a thread of its own, because the ranks wait for each other. Returns the first failure.
Status run_together(std::vector<std::function<Status()>> work);

// The work that this thread's group has collected: setoGroupEnd runs it; a dropped group drops it.
Status run_collected();
void drop_collected();
bool has_collected();

}  // namespace seto::api

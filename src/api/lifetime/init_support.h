#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/api/support/handles.h"
#include "src/bootstrap/providers/in_process.h"
#include "src/bootstrap/unique_id.h"

namespace seto::api {

// How the ranks of a new communicator find each other.
struct Rendezvous {
  UniqueIdBytes id{};
  std::shared_ptr<InProcessHub> hub;  // instead of the id
};

// A handle for a communicator to be made, not yet the user's.
std::shared_ptr<setoComm> new_handle(Rank rank, int ranks, Settings settings);
Status make(setoComm& comm, const Rendezvous& rendezvous);
// `given_up`: see CommunicatorOptions.
Status make_over(setoComm& comm, Bootstrap& bootstrap, const std::atomic<bool>& given_up);
void hand_over(const std::shared_ptr<setoComm>& comm, setoComm_t* where);

// Work that blocks until other ranks do theirs: at once on this thread, or, inside a group, at its end, beside that of the other
// ranks of this thread.
Status now_or_at_group_end(std::function<Status()> work);

// Each on a thread of its own, for ranks that wait for each other. The first failure.
Status run_together(std::vector<std::function<Status()>> work);

// What this thread's group has collected. For setoGroupEnd, before it issues operations; the other, where a group is dropped.
Status run_collected();
void drop_collected();
bool has_collected();

}  // namespace seto::api

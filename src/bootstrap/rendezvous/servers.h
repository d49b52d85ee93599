#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/rendezvous/rendezvous_server.h"
#include "src/bootstrap/unique_id.h"
#include "src/net/peer_listener.h"

namespace seto {

// The rendezvous servers of this process. Each lives until it has served its ranks, or until the process ends.

// Makes an id and starts its server in this process, which must live until every rank has its communicator. An id for one
// communicator that is not used by `idle_until` ends. Any thread may call it.
[[nodiscard]] Result<UniqueIdBytes> create_unique_id(UniqueId::Serves serves, const NetworkChoice& network, Deadline idle_until);

// Ends the server of an id that no rank will use, if this process made it. Blocks briefly. Any thread may call it.
void give_up_unique_id(const UniqueIdBytes& id);

// A server of a root in this process: the one that was started for it before, or the one that `start` makes now, which may block.
// A thread that needs the same root meanwhile waits, and starts a server itself if the first start failed. `at_exit` runs when
// the process ends and removes what the server left, such as a file.
struct RootServer {
  std::unique_ptr<RendezvousServer> server;
  std::function<void()> at_exit;
  RendezvousAddress address;  // the address for this process itself
  UniqueIdBytes id{};         // valid if the root is a file
};
[[nodiscard]] Result<const RootServer*> root_server(const std::string& root, Deadline until,
                                                    const std::function<Result<RootServer>()>& start);

}  // namespace seto

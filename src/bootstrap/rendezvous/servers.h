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

// The rendezvous of this process, which live until they have served, or until it ends.

// Makes an id and starts its rendezvous in this process, which must live until every rank has its communicator. Ids for one
// communicator that are not used by `idle_until` end. Any thread.
[[nodiscard]] Result<UniqueIdBytes> create_unique_id(UniqueId::Serves serves, const NetworkChoice& network, Deadline idle_until);

// Ends the rendezvous of an id that nobody will use, if this process made it. Blocks briefly. Any thread.
void give_up_unique_id(const UniqueIdBytes& id);

// A server that serves a root of this process: the one that was started for it before, or the one that `start` makes now, which
// may block. Whoever wants the same root meanwhile waits for it, and starts one if that failed. What it leaves behind, `at_exit`
// removes when the process ends.
struct RootServer {
  std::unique_ptr<RendezvousServer> server;
  std::function<void()> at_exit;
  Contact contact;     // for this process itself
  UniqueIdBytes id{};  // if the root is a file
};
[[nodiscard]] Result<const RootServer*> root_server(const std::string& root, Deadline until,
                                                    const std::function<Result<RootServer>()>& start);

}  // namespace seto

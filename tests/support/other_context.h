#pragma once

#include <string>

#include "src/control/local/local_connector.h"
#include "src/core/connect/context.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {

// Of two ranks that have a context each: where the other one's is. The attempt is left to the caller.
inline Result<PeerAddress> other_context(const Context& context, Room& room, const Seat& seat, Deadline until) {
  RoomBootstrap bootstrap(room, {seat.rank, seat.ranks});
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  SETO_ASSIGN(const auto processes, bootstrap.all_gather(meetings->address(), until));
  SETO_ASSIGN(const auto contexts, bootstrap.all_gather(std::to_string(context.id()), until));
  const auto other = static_cast<std::size_t>(1 - seat.rank);
  return PeerAddress{processes[other], std::stoull(contexts[other]), 0};
}

}  // namespace seto::testing

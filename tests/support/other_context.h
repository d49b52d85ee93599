#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/control/local/local_connector.h"
#include "src/core/connect/context.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {

// An attempt to connect two ranks, and the places to which its members refer.
struct AttemptOfTwo {
  std::vector<Place> places;
  Attempt attempt;
};

// For two ranks with these contexts each: the places are those of rank 0, then those of rank 1. Each rank connects to all
// contexts of the other rank. The caller sets the number of the attempt.
inline Result<AttemptOfTwo> attempt_of_two(const std::vector<const Context*>& contexts, SharedMemoryRanks& room, const Seat& seat,
                                           Deadline until) {
  SharedMemoryBootstrap bootstrap(room, {seat.rank, seat.ranks});
  SETO_ASSIGN(LocalConnector* const local_connector, LocalConnector::of_process());
  SETO_ASSIGN(const auto processes, bootstrap.all_gather(local_connector->address(), until));
  const std::size_t each = contexts.size();
  AttemptOfTwo result;
  result.places.resize(2 * each);
  result.attempt.members.resize(2 * each);
  result.attempt.own = static_cast<std::uint32_t>(static_cast<std::size_t>(seat.rank) * each);
  for (std::size_t index = 0; index < each; ++index) {
    SETO_ASSIGN(const auto numbers, bootstrap.all_gather(std::to_string(contexts[index]->id()), until));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::size_t at = rank * each + index;
      result.places[at] = {"here", processes[rank], std::stoull(numbers[rank])};
      AttemptMember& member = result.attempt.members[at];
      member.number = static_cast<std::uint32_t>(at);
      member.place = &result.places[at];
      member.wanted = rank != static_cast<std::size_t>(seat.rank);
    }
  }
  return result;
}

// Connects that context over shared memory. The result is indexed like the members of the attempt.
inline Result<Connections> connect_over_memory(Context& context, const Attempt& attempt, Deadline until) {
  SETO_ASSIGN(Endpoint* const endpoint, context.transports().open(0));
  Connections made(attempt.members.size());
  SETO_TRY(endpoint->connect(attempt, until, made));
  return made;
}

}  // namespace seto::testing

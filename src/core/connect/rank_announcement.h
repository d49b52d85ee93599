#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/control/handshake.h"
#include "src/core/connect/connection_cache.h"

namespace seto {

// What a rank says of itself when a communicator is made.
struct Introduction {
  std::string host;
  std::string site;
  std::string process;
  ContextId context = 0;
  std::uint64_t board = 0;
  std::uint64_t identity = 0;  // of the board: random, never 0
  int cores = 1;               // that it may run on
  std::uint64_t machine = 0;   // machine_number()
  int machine_cores = 1;       // of all that run there
  std::string place;           // host and process as a person knows them: "tokyo-3:4711"
  std::string outcome;         // outcome_text of what has failed already
  Attempts offered;            // whose connections it holds open for those of the others that know them too

  [[nodiscard]] std::string encoded() const;
  static Result<Introduction> decoded(const std::string& text);
};

// What a rank says where not all share memory: how it is reached over TCP, and, where the ranks have no secret yet but their
// channel can be trusted with one, rank 0's proposal.
struct DoorNotice {
  std::string door;  // FrontDoor::address()
  std::string secret;
  std::uint32_t sockets = 1;
  std::string outcome;

  [[nodiscard]] std::string encoded() const;
  static Result<DoorNotice> decoded(const std::string& text);
};

// Those of all ranks; the text names the rank whose is wrong.
Result<std::vector<Introduction>> introductions_of(const std::vector<std::string>& texts);

// The number of this making: the same on all ranks, and no other's, because identities are random.
AttemptId attempt_of(const std::vector<std::string>& texts);

// Ranks a core where that rank runs: of those of its host, or of all on its machine if that is more. Ranks of one machine that do
// not share memory take turns all the same.
double crowding_at(const Introduction& one, const std::vector<Introduction>& all);
// Of the most crowded of all, from what all ranks said, so that all get the same.
double crowding(const std::vector<Introduction>& all);

// How a step that all ranks take ended on one of them, as it travels: a code, then what happened; empty if all is well.
std::string outcome_text(const Status& made);
// The same text on every rank, from what all said: of those that failed, the one that is nearest to the cause. Who only waited,
// or heard that another gave up, is not.
Status common_outcome(Rank own, const Status& mine, const std::vector<std::string>& outcomes);
// A rank that could not connect, in the words that all ranks get. What it only heard stays as it was said.
Status gave_up(Rank rank, const Status& reason);

}  // namespace seto

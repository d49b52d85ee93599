#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/record/wait_reports.h"

namespace seto {

// A parsed dump. Dumps are untrusted: from any host, from any library version with the same schema, possibly forged. After
// parsing, texts hold no control characters, ranks are within `ranks`, and calls are in the order of their sequence.
struct ReadCall {
  std::uint64_t sequence = 0;
  std::uint64_t operation = 0;  // 0: the call has no operation number
  std::string what;
  std::string text;
  std::uint64_t count = 0;
  std::string type;
  std::string op;
  std::uint64_t root = 0;
  std::string algorithm;
  std::string digest;
  std::string state;
  std::uint64_t issued_us = 0;
  std::uint64_t begun_us = 0;
  std::uint64_t ended_us = 0;
  std::optional<WaitReport> wait;

  [[nodiscard]] bool waits() const { return state == "begun" || state == "failed"; }
  [[nodiscard]] std::uint64_t since_us() const { return begun_us != 0 ? begun_us : issued_us; }
};

struct ReadPeer {
  std::string state;  // "alive", "left", "dead", "this rank"
  std::uint64_t done = 0;
  std::uint64_t noted = 0;  // operation of the rank's last note; 0: no note was seen
  Rank blames = -1;
  std::string place;  // host and process
  std::string way;    // how the rank is reached; empty: unknown
  std::string why;    // why the rank is dead; empty: unknown
};

struct ReadDump {
  std::string source;  // name of the dump for messages: its file
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t time_us = 0;
  std::string name;
  std::string attempt;
  Rank rank = 0;
  int ranks = 1;
  bool failed = false;
  std::string failure;
  std::string failure_code;
  std::uint64_t failed_at_us = 0;
  Rank blamed = -1;  // the rank that the failure names; -1: none
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::vector<ReadPeer> peers;  // by rank
  std::vector<ReadCall> calls;
};

// Truncates valid UTF-8 at a character boundary and replaces control characters, because the text is printed on a terminal.
std::string printable(std::string text);

// An error text begins with the source and states the problem.
Result<ReadDump> read_dump(std::string_view source, std::string_view text);

}  // namespace seto

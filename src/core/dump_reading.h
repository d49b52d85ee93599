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

// A dump as it was read back: of any host, any version of the library that writes the same schema, and perhaps a forgery. Texts
// hold no control characters, ranks are within `ranks`, calls come in the order of their sequence.
struct ReadCall {
  std::uint64_t sequence = 0;
  std::uint64_t operation = 0;  // 0: it has no number
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
  std::optional<WaitOfCall> wait;

  [[nodiscard]] bool waits() const { return state == "begun" || state == "failed"; }
  [[nodiscard]] std::uint64_t since_us() const { return begun_us != 0 ? begun_us : issued_us; }
};

struct ReadPeer {
  std::string state;  // "alive", "left", "dead", "this rank"
  std::uint64_t done = 0;
  std::uint64_t noted = 0;  // the operation of its last note; 0: none was seen
  Rank blames = -1;
  std::string place;  // host and process
  std::string way;    // by which it is reached; empty: it was not said
  std::string why;    // it is dead; empty: it was not said
};

struct ReadDump {
  std::string source;  // what the reader calls it: its file
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
  Rank culprit = -1;
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::vector<ReadPeer> peers;  // by rank
  std::vector<ReadCall> calls;
};

// The text says what is wrong with it, and begins with the source.
Result<ReadDump> read_dump(std::string_view source, std::string_view text);

}  // namespace seto

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/dump_reading.h"
#include "src/core/explain.h"

namespace seto {

// What went wrong, as far as dumps of several ranks tell together.
struct Verdict {
  // differ, died, left, late, never_issued, no_dump, link, waits_for_nobody, circle, behind, failed, well
  std::string kind;
  std::string text;  // one line for a person
  std::uint64_t operation = 0;
  std::vector<Rank> culprits;
};

// The dumps of one communicator.
struct Case {
  std::vector<ReadDump> dumps;  // by rank, one of each
  std::vector<Rank> missing;    // ranks of which there is none
  Verdict verdict;
  std::vector<std::string> remarks;

  [[nodiscard]] int ranks() const { return dumps.front().ranks; }
  [[nodiscard]] const ReadDump* of(Rank rank) const;
};

// The oldest call that has begun and not ended well; null: none.
const ReadCall* stuck_call(const ReadDump& dump);
// That operation, if it is still remembered.
const ReadCall* call_of(const ReadDump& dump, std::uint64_t operation);

// Who failed first knows why, the others heard of it; null: none has failed.
const ReadDump* first_to_fail(const Case& one);

// Pure. Puts together what belongs together, keeps the latest dump of each rank, judges; those in trouble come first. `left_out`:
// why something was.
std::vector<Case> cases_of(std::vector<ReadDump> dumps, std::vector<std::string>& left_out);
Verdict judge(const Case& one);

struct DumpText {
  std::string_view name;  // for messages: its file
  std::string_view text;
};
// Fails if none of them is a dump.
Result<std::string> report(std::span<const DumpText> dumps, ReportFormat format);

}  // namespace seto

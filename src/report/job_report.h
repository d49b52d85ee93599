#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/report/dump_parser.h"
#include "src/report/explain.h"

namespace seto {

// The diagnosis of the dumps of several ranks.
struct Diagnosis {
  // differ, died, left, late, never_issued, no_dump, link, waits_for_nobody, circle, behind, failed, well
  std::string kind;
  std::string text;  // one sentence for a person
  std::uint64_t operation = 0;
  std::vector<Rank> blamed;
};

// The dumps of one communicator and their diagnosis.
struct DumpGroup {
  std::vector<ReadDump> dumps;  // ordered by rank, at most one for each rank
  std::vector<Rank> missing;    // ranks without a dump
  Diagnosis diagnosis;
  std::vector<std::string> remarks;

  [[nodiscard]] int ranks() const { return dumps.front().ranks; }
  [[nodiscard]] const ReadDump* of(Rank rank) const;
};

// The oldest call that has begun and has not ended successfully; null: none.
const ReadCall* stuck_call(const ReadDump& dump);
// The call with that operation number; null if the recorder has overwritten it.
const ReadCall* call_of(const ReadDump& dump, std::uint64_t operation);

// The rank that failed first, which knows the cause; the others learned of it. Null if no rank has failed.
const ReadDump* first_to_fail(const DumpGroup& group);

// Pure function: groups dumps by communicator, keeps the latest dump of each rank, diagnoses each group, and lists those in
// trouble first. `left_out` receives the reason for each dump that is not used.
std::vector<DumpGroup> group_dumps(std::vector<ReadDump> dumps, std::vector<std::string>& left_out);
Diagnosis diagnose(const DumpGroup& group);

struct DumpText {
  std::string_view name;  // file name, for messages
  std::string_view text;
};
// Fails if no text is a valid dump.
Result<std::string> report(std::span<const DumpText> dumps, ReportFormat format);

}  // namespace seto

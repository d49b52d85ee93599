#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/report/job_report.h"

// Phrases and sentences of which the text of a diagnosis is composed.
namespace seto {

[[nodiscard]] std::string named(Rank rank);
// "rank 2 waits", "ranks 0 and 1 wait".
[[nodiscard]] std::string with_verb(const std::vector<Rank>& ranks, const char* singular, const char* plural);
// " (text)"; nothing for an empty text.
[[nodiscard]] std::string in_brackets(const std::string& text);
// Appends to a list that commas separate.
void append_item(std::string& list, const std::string& item);
// "operation 6 (all_reduce of 8 float, sum)"; "a send of ..." for a call without a number.
[[nodiscard]] std::string with_number(const ReadCall& call);

// When the rank last issued or ended a call; 0: the dump holds no call.
[[nodiscard]] std::uint64_t last_sign_us(const ReadDump& dump);
// Describes what the rank does, as a sentence about "it".
[[nodiscard]] std::string where_it_is(const ReadDump& dump);
// Describes a rank without a dump, from the dumps of the other ranks.
[[nodiscard]] std::string as_others_see(const DumpGroup& group, Rank rank);

// "rank 2 is lost (host:17), after 7 operations: its process has ended"; "after at least 7 operations (rank 2 took part in
// operation 9)" where the others know that it did more than it told them
[[nodiscard]] std::string lost_text(const DumpGroup& group, const std::vector<Rank>& ranks, const ReadPeer& seen);
// "; rank 0 reported this first: ..."
[[nodiscard]] std::string reported_first(const ReadDump& dump);
// "ranks wait for each other in a circle: rank 0 -> rank 1 -> rank 0; rank 0 in ..."
[[nodiscard]] std::string cycle_text(const std::vector<Rank>& cycle, const ReadCall& last);
// "operation 6 (...) waits at the link from rank 1 to rank 0 (TCP ...): rank 0 waits for ..."
[[nodiscard]] std::string waits_at_link(const ReadDump& waiter, const ReadCall& call, Rank from);

}  // namespace seto

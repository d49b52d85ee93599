// Diagnosis of one communicator from the dumps of its ranks. The checks run in a fixed order; the first that finds a problem
// gives the diagnosis.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "src/bootstrap/bootstrap.h"
#include "src/core/call/ids.h"
#include "src/core/call/mismatch.h"
#include "src/report/diagnosis_phrases.h"
#include "src/report/diagnosis_progressing.h"
#include "src/report/job_report.h"

namespace seto {
namespace {

using Found = std::optional<Diagnosis>;

// ---- calls that differ ----

// A field that must agree between the ranks' calls.
struct Field {
  const char* name;
  std::string (*of)(const ReadCall&);
};
constexpr std::array<Field, 7> kFields = {{
    {"collective", [](const ReadCall& call) { return call.what; }},
    {"count", [](const ReadCall& call) { return std::to_string(call.count); }},
    {"type", [](const ReadCall& call) { return call.type; }},
    {"op", [](const ReadCall& call) { return call.op; }},
    {"root", [](const ReadCall& call) { return std::to_string(call.root); }},
    {"algorithm", [](const ReadCall& call) { return call.algorithm; }},
    {"digest", [](const ReadCall& call) { return call.digest; }},
}};

const Field* first_difference(const ReadCall& left, const ReadCall& right) {
  for (const Field& field : kFields)
    if (field.of(left) != field.of(right)) return &field;
  return nullptr;
}

std::string all_fields(const ReadCall& call) {
  std::string all;
  for (const Field& field : kFields) all += field.of(call) + "\n";
  return all;
}

// A rejected call was never bound, so it has no digest. The other ranks learned of it from its note.
bool comparable(const ReadCall& call) { return call.operation != 0 && !call.digest.empty() && call.digest != "0x0"; }

using Stated = std::pair<Rank, const ReadCall*>;

// The ranks that made the same call.
std::vector<Rank> ranks_of(const std::vector<Stated>& stated) {
  std::vector<Rank> ranks;
  for (const Stated& one : stated) ranks.push_back(one.first);
  return ranks;
}

// The most frequent call is taken as the right one; the ranks that made another call are blamed.
Diagnosis difference(const std::vector<Stated>& stated) {
  std::map<std::string, std::vector<Stated>> kinds;
  for (const Stated& one : stated) kinds[all_fields(*one.second)].push_back(one);
  const auto most = std::max_element(
      kinds.begin(), kinds.end(), [](const auto& left, const auto& right) { return left.second.size() < right.second.size(); });
  Diagnosis diagnosis{"differ", "", stated.front().second->operation, {}};
  const ReadCall& usual = *most->second.front().second;
  diagnosis.text = "operation " + std::to_string(usual.operation) + " differs between ranks: ";
  std::string usual_values;  // the usual call's value of each field in which another call differs
  std::set<const Field*> fields;
  for (const auto& [key, ranks] : kinds) {
    if (key == most->first) continue;
    const std::vector<Rank> others = ranks_of(ranks);
    const ReadCall& other = *ranks.front().second;
    const Field& field = *first_difference(other, usual);
    diagnosis.text += with_verb(others, "calls", "call") + " " + other.text +
                      in_brackets(std::string(field.name) + " " + field.of(other)) + ", ";
    if (fields.insert(&field).second) append_item(usual_values, std::string(field.name) + " " + field.of(usual));
    diagnosis.blamed.insert(diagnosis.blamed.end(), others.begin(), others.end());
  }
  diagnosis.text += "but " + with_verb(ranks_of(most->second), "calls", "call") + " " + usual.text + in_brackets(usual_values);
  return diagnosis;
}

Found calls_differ(const DumpGroup& group) {
  std::map<std::uint64_t, std::vector<Stated>> by_operation;
  for (const ReadDump& dump : group.dumps)
    for (const ReadCall& call : dump.calls)
      if (comparable(call)) by_operation[call.operation].push_back({dump.rank, &call});
  for (const auto& [operation, stated] : by_operation)
    for (const Stated& other : stated)
      if (first_difference(*other.second, *stated.front().second) != nullptr) return difference(stated);
  return {};
}

// A dump of one rank may be all there is: its failure names both calls. It does not tell which of the two is wrong.
Found recorded_difference(const DumpGroup& group) {
  for (const ReadDump& dump : group.dumps) {
    const std::optional<ReadMismatch> read = dump.failed ? read_mismatch(dump.failure) : std::nullopt;
    if (!read) continue;
    const auto& [operation, rank, peer] = read->mismatch;
    if (rank >= group.ranks() || peer >= group.ranks()) continue;  // the dump contradicts itself
    return Diagnosis{"differ",
                     "operation " + std::to_string(operation) + " differs between ranks: " + std::string(read->difference),
                     operation,
                     {std::min(rank, peer), std::max(rank, peer)}};
  }
  return {};
}

// ---- ranks that died or left ----

std::vector<Rank> ranks_that(const DumpGroup& group, const char* state) {
  std::set<Rank> found;
  for (const ReadDump& dump : group.dumps)
    for (std::size_t rank = 0; rank < dump.peers.size(); ++rank)
      if (dump.peers[rank].state == state) found.insert(static_cast<Rank>(rank));
  return {found.begin(), found.end()};
}

Found a_rank_died(const DumpGroup& group) {
  std::vector<Rank> dead = ranks_that(group, "dead");
  // A rank that failed and wrote a dump ended after the failure, so its end is not the cause.
  std::erase_if(dead, [&](Rank rank) { return group.of(rank) != nullptr && group.of(rank)->failed; });
  if (dead.empty()) return {};
  const ReadDump* const first = first_to_fail(group);
  Diagnosis diagnosis{"died", "", 0, dead};
  if (first != nullptr && first->blamed >= 0) {
    // If the failure blames a rank that is not dead, a launcher ended the dead ranks after the failure.
    if (std::find(dead.begin(), dead.end(), first->blamed) == dead.end()) return {};
    diagnosis.blamed = {first->blamed};
  }
  const ReadPeer& seen =
      (first != nullptr ? *first : group.dumps.front()).peers[static_cast<std::size_t>(diagnosis.blamed.front())];
  diagnosis.text = lost_text(group, diagnosis.blamed, seen);
  if (first != nullptr) diagnosis.text += reported_first(*first);
  return diagnosis;
}

// A rank that ended the communicator itself (abort, destroy): not at a deadline, and not because of another rank.
Found a_rank_left(const DumpGroup& group) {
  const ReadDump* const first = first_to_fail(group);
  if (first == nullptr) return {};
  if (first->failure_code == "aborted")
    return Diagnosis{"left", named(first->rank) + " ended the communicator: " + first->failure, 0, {first->rank}};
  if (first->blamed < 0 || first->blamed == first->rank || group.of(first->blamed) != nullptr) return {};
  if (first->peers[static_cast<std::size_t>(first->blamed)].state != "left") return {};
  return Diagnosis{"left", named(first->blamed) + " left the communicator" + reported_first(*first), 0, {first->blamed}};
}

// ---- ranks that wait ----

// The lowest operation in which a rank waits; 0: no rank waits in an operation.
std::uint64_t awaited_operation(const DumpGroup& group) {
  std::uint64_t lowest = 0;
  for (const ReadDump& dump : group.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr && call->operation != 0)
      lowest = lowest == 0 ? call->operation : std::min(lowest, call->operation);
  return lowest;
}

// The operation's call from any dump that holds it.
const ReadCall* any_call_of(const DumpGroup& group, std::uint64_t operation) {
  for (const ReadDump& dump : group.dumps)
    if (const ReadCall* const call = call_of(dump, operation); call != nullptr) return call;
  return nullptr;
}

std::vector<Rank> waiting_in(const DumpGroup& group, std::uint64_t operation) {
  std::vector<Rank> ranks;
  for (const ReadDump& dump : group.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr && call->operation == operation)
      ranks.push_back(dump.rank);
  return ranks;
}

Found never_issued(const DumpGroup& group) {
  const std::uint64_t operation = awaited_operation(group);
  const ReadCall* const call = any_call_of(group, operation);
  if (call == nullptr) return {};
  std::vector<Rank> late;
  for (const ReadDump& dump : group.dumps)
    if (dump.issued < operation) late.push_back(dump.rank);
  if (late.empty()) return {};
  const ReadDump& first = *group.of(late.front());
  return Diagnosis{"never_issued",
                   rank_list(late) + " never issued " + with_number(*call) + ", in which " +
                       with_verb(waiting_in(group, operation), "waits", "wait") + "; " + named(first.rank) + " is at operation " +
                       std::to_string(first.issued) + ", " + where_it_is(first),
                   operation, late};
}

// A rank issued the operation after another one had failed in it.
Found issued_late(const DumpGroup& group) {
  const ReadDump* const first = first_to_fail(group);
  if (first == nullptr || first->failed_at_us == 0) return {};
  const ReadCall* const awaited = stuck_call(*first);
  if (awaited == nullptr || awaited->operation == 0) return {};
  std::vector<Rank> late;
  std::uint64_t since = 0;
  for (const ReadDump& dump : group.dumps) {
    const ReadCall* const call = call_of(dump, awaited->operation);
    if (call == nullptr || call->issued_us <= first->failed_at_us) continue;
    late.push_back(dump.rank);
    since = std::max(since, call->issued_us);
  }
  if (late.empty()) return {};
  return Diagnosis{"late",
                   rank_list(late) + " issued " + with_number(*awaited) + " " + seconds_text(awaited->issued_us, since) +
                       " after " + named(first->rank) + ", which had failed by then (by the clocks of their hosts)",
                   awaited->operation, late};
}

bool reached(const DumpGroup& group, Rank rank, std::uint64_t operation) {
  return std::any_of(group.dumps.begin(), group.dumps.end(), [&](const ReadDump& dump) {
    const ReadPeer& peer = dump.peers[static_cast<std::size_t>(rank)];
    return peer.noted >= operation || peer.done >= operation;
  });
}

Found has_no_dump(const DumpGroup& group) {
  const std::uint64_t operation = awaited_operation(group);
  const ReadCall* const call = any_call_of(group, operation);
  if (call == nullptr) return {};
  std::vector<Rank> absent;
  for (const Rank rank : group.missing)
    if (!reached(group, rank, operation)) absent.push_back(rank);
  if (absent.empty()) return {};
  return Diagnosis{"no_dump",
                   rank_list(absent) + " never reached " + with_number(*call) + " and left no dump" +
                       in_brackets(as_others_see(group, absent.front())) + ": stopped, cut off, or computing",
                   operation, absent};
}

// ---- chains of ranks that wait for each other ----

// The chain that begins at a waiting rank and continues with the rank for which each one waits.
struct WaitChain {
  std::vector<Rank> ranks;  // in order; the chain ends at the last one
  bool cyclic = false;      // the last rank is in the chain before, too
};

WaitChain chain_from(const DumpGroup& group, Rank start) {
  WaitChain chain{{start}, false};
  for (;;) {
    const ReadDump* const dump = group.of(chain.ranks.back());
    const ReadCall* const call = dump == nullptr ? nullptr : stuck_call(*dump);
    if (call == nullptr || !call->wait || call->wait->peer < 0) return chain;
    chain.cyclic = std::find(chain.ranks.begin(), chain.ranks.end(), call->wait->peer) != chain.ranks.end();
    chain.ranks.push_back(call->wait->peer);
    if (chain.cyclic) return chain;
  }
}

Diagnosis diagnose_cycle(const DumpGroup& group, const WaitChain& chain) {
  const Rank end = chain.ranks.back();
  const std::vector<Rank> cycle(std::find(chain.ranks.begin(), chain.ranks.end(), end), chain.ranks.end());
  const ReadCall& call = *stuck_call(*group.of(end));
  return {"circle", cycle_text(cycle, call), call.operation, {cycle.begin(), cycle.end() - 1}};
}

// The chain ends at a rank that waits for no other rank. `chains`: the number of chains that end there.
Diagnosis diagnose_chain(const DumpGroup& group, const WaitChain& chain, std::size_t chains) {
  if (chain.cyclic) return diagnose_cycle(group, chain);
  const Rank end = chain.ranks.back();
  const Rank waiter = chain.ranks[chain.ranks.size() - 2];
  const ReadCall& call = *stuck_call(*group.of(waiter));
  Diagnosis diagnosis{"behind", waits_at_link(*group.of(waiter), call, end), call.operation, {end}};
  if (chains > 1) diagnosis.text += "; " + std::to_string(chains) + " ranks wait for that";
  const ReadDump* const dump = group.of(end);
  if (dump == nullptr) {
    diagnosis.kind = "no_dump";
    diagnosis.text += "; no dump of " + named(end) + ": " + as_others_see(group, end);
  } else if (call.operation != 0 && dump->done >= call.operation) {
    diagnosis.kind = "link";
    diagnosis.blamed = {end, waiter};
    diagnosis.text += "; " + named(end) + " has ended it, so its data is in flight or lost";
  } else if (const ReadCall* const own = stuck_call(*dump); own != nullptr) {
    diagnosis.kind = "waits_for_nobody";
    diagnosis.text +=
        "; " + named(end) + " waits for no rank in " + with_number(*own) + ": it computes, or did not report its wait";
  } else {
    diagnosis.text += "; " + named(end) + " has not reached it: " + where_it_is(*dump);
  }
  return diagnosis;
}

// The key by which chains are counted: the rank at the end, or the lowest rank of the cycle.
Rank end_of(const WaitChain& chain) {
  if (!chain.cyclic) return chain.ranks.back();
  return *std::min_element(std::find(chain.ranks.begin(), chain.ranks.end(), chain.ranks.back()), chain.ranks.end());
}

// Diagnoses the end at which most chains end. The shortest of these chains has the last link.
Found chain_of_waits(const DumpGroup& group) {
  std::map<Rank, std::vector<WaitChain>> ends;
  for (const ReadDump& dump : group.dumps)
    if (WaitChain chain = chain_from(group, dump.rank); chain.ranks.size() > 1) ends[end_of(chain)].push_back(std::move(chain));
  if (ends.empty()) return {};
  const auto most = std::max_element(
      ends.begin(), ends.end(), [](const auto& left, const auto& right) { return left.second.size() < right.second.size(); });
  const auto shortest =
      std::min_element(most->second.begin(), most->second.end(),
                       [](const WaitChain& left, const WaitChain& right) { return left.ranks.size() < right.ranks.size(); });
  return diagnose_chain(group, *shortest, most->second.size());
}

// ---- none of these ----

Found failed_otherwise(const DumpGroup& group) {
  const ReadDump* const first = first_to_fail(group);
  if (first == nullptr) return {};
  const Rank blamed = first->blamed >= 0 ? first->blamed : first->rank;
  return Diagnosis{"failed", named(first->rank) + " failed first: " + first->failure, 0, {blamed}};
}

Found waits_for_no_rank(const DumpGroup& group) {
  const std::uint64_t operation = awaited_operation(group);
  const ReadCall* const call = any_call_of(group, operation);
  if (call == nullptr) return {};
  const std::vector<Rank> waiting = waiting_in(group, operation);
  return Diagnosis{"waits_for_nobody",
                   with_verb(waiting, "has", "have") + " not ended " + with_number(*call) + ", and " +
                       with_verb(waiting, "reports", "report") + " no wait for another rank: computing, or no report was made",
                   operation, waiting};
}

Diagnosis no_rank_waits(const DumpGroup& group) {
  const auto [behind, ahead] =
      std::minmax_element(group.dumps.begin(), group.dumps.end(),
                          [](const ReadDump& left, const ReadDump& right) { return left.issued < right.issued; });
  if (behind->issued == ahead->issued)
    return {
        "well", "no rank waits: all ranks with a dump have ended operation " + std::to_string(ahead->issued), ahead->issued, {}};
  return {"behind",
          "no rank waits, but " + named(behind->rank) + " is at operation " + std::to_string(behind->issued) + " and " +
              named(ahead->rank) + " at " + std::to_string(ahead->issued) + "; " + named(behind->rank) + ": " +
              where_it_is(*behind),
          behind->issued,
          {behind->rank}};
}

}  // namespace

Diagnosis diagnose(const DumpGroup& group) {
  for (const auto check : {calls_differ, recorded_difference, a_rank_died, a_rank_left, progressing, issued_late, never_issued,
                           has_no_dump, chain_of_waits, waits_for_no_rank, failed_otherwise})
    if (Found found = check(group); found) return *std::move(found);
  return no_rank_waits(group);
}

}  // namespace seto

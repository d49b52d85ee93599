// What the dumps of one communicator say together. Each look gives a verdict, or none: then the next one looks.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "src/bootstrap/bootstrap.h"
#include "src/core/moving.h"
#include "src/core/call/ids.h"
#include "src/core/report.h"
#include "src/core/verdict_words.h"

namespace seto {
namespace {

using Found = std::optional<Verdict>;

// ---- calls that differ ----

// What both state, as far as it has to agree: the first that does not.
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

// A call that was rejected was never bound: it has no digest, and its rejection was told.
bool comparable(const ReadCall& call) { return call.operation != 0 && !call.digest.empty() && call.digest != "0x0"; }

using Stated = std::pair<Rank, const ReadCall*>;

Verdict difference(const std::vector<Stated>& stated) {
  // Who stands alone is named: the others agree with the most frequent call.
  std::map<std::string, std::vector<Stated>> kinds;
  for (const Stated& one : stated) kinds[all_fields(*one.second)].push_back(one);
  const auto most = std::max_element(
      kinds.begin(), kinds.end(), [](const auto& left, const auto& right) { return left.second.size() < right.second.size(); });
  Verdict verdict{"differ", "", stated.front().second->operation, {}};
  std::vector<Rank> agreed;
  for (const Stated& one : most->second) agreed.push_back(one.first);
  const ReadCall& usual = *most->second.front().second;
  verdict.text = "operation " + std::to_string(usual.operation) + " differs between ranks: ";
  std::string said;  // of the usual call: each field that one of the others has another of
  std::set<const Field*> fields;
  for (const auto& [key, ranks] : kinds) {
    if (key == most->first) continue;
    std::vector<Rank> others;
    for (const Stated& one : ranks) others.push_back(one.first);
    const ReadCall& other = *ranks.front().second;
    const Field& field = *first_difference(other, usual);
    verdict.text += rank_list(others) + (others.size() == 1 ? " calls " : " call ") + other.text + " (" + field.name + " " +
                    field.of(other) + "), ";
    if (fields.insert(&field).second) said += (said.empty() ? "" : ", ") + std::string(field.name) + " " + field.of(usual);
    verdict.culprits.insert(verdict.culprits.end(), others.begin(), others.end());
  }
  verdict.text += "but " + rank_list(agreed) + (agreed.size() == 1 ? " calls " : " call ") + usual.text + " (" + said + ")";
  return verdict;
}

Found calls_differ(const Case& one) {
  std::map<std::uint64_t, std::vector<Stated>> by_operation;
  for (const ReadDump& dump : one.dumps)
    for (const ReadCall& call : dump.calls)
      if (comparable(call)) by_operation[call.operation].push_back({dump.rank, &call});
  for (const auto& [operation, stated] : by_operation)
    for (const Stated& other : stated)
      if (first_difference(*other.second, *stated.front().second) != nullptr) return difference(stated);
  return {};
}

// ---- ranks that are gone ----

std::vector<Rank> ranks_that(const Case& one, const char* state) {
  std::set<Rank> found;
  for (const ReadDump& dump : one.dumps)
    for (std::size_t rank = 0; rank < dump.peers.size(); ++rank)
      if (dump.peers[rank].state == state) found.insert(static_cast<Rank>(rank));
  return {found.begin(), found.end()};
}

Found somebody_died(const Case& one) {
  std::vector<Rank> dead = ranks_that(one, "dead");
  // Who failed, and said why, has ended after that.
  std::erase_if(dead, [&](Rank rank) { return one.of(rank) != nullptr && one.of(rank)->failed; });
  if (dead.empty()) return {};
  const ReadDump* const first = first_to_fail(one);
  Verdict verdict{"died", "", 0, dead};
  if (first != nullptr && first->culprit >= 0) {
    // A launcher that ends the rest after a failure is not its cause.
    const bool blamed = std::find(dead.begin(), dead.end(), first->culprit) != dead.end();
    if (!blamed) return {};
    verdict.culprits = {first->culprit};
  }
  const ReadPeer& seen =
      (first != nullptr ? *first : one.dumps.front()).peers[static_cast<std::size_t>(verdict.culprits.front())];
  const std::string why = seen.why.empty() ? "its process has ended" : seen.why;
  verdict.text = rank_list(verdict.culprits) + (verdict.culprits.size() == 1 ? " is lost" : " are lost") +
                 (seen.place.empty() ? "" : " (" + seen.place + ")") + ", after " + std::to_string(seen.done) +
                 " operations: " + why;
  if (first != nullptr) verdict.text += "; rank " + std::to_string(first->rank) + " said so first: " + first->failure;
  return verdict;
}

// Who left by itself (aborted, destroyed): not at a deadline, and not because of another.
Found somebody_left(const Case& one) {
  const ReadDump* const first = first_to_fail(one);
  if (first == nullptr) return {};
  if (first->failure_code == "aborted")
    return Verdict{"left", named(first->rank) + " ended the communicator: " + first->failure, 0, {first->rank}};
  if (first->culprit < 0 || first->culprit == first->rank || one.of(first->culprit) != nullptr) return {};
  if (first->peers[static_cast<std::size_t>(first->culprit)].state != "left") return {};
  return Verdict{
      "left",
      named(first->culprit) + " left the communicator; rank " + std::to_string(first->rank) + " said so first: " + first->failure,
      0,
      {first->culprit}};
}

// ---- who waits for whom ----

// The operation that the slowest of those that wait have begun; 0: nobody waits in one.
std::uint64_t awaited_operation(const Case& one) {
  std::uint64_t lowest = 0;
  for (const ReadDump& dump : one.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr && call->operation != 0)
      lowest = lowest == 0 ? call->operation : std::min(lowest, call->operation);
  return lowest;
}

const ReadCall* somebodys_call(const Case& one, std::uint64_t operation) {
  for (const ReadDump& dump : one.dumps)
    if (const ReadCall* const call = call_of(dump, operation); call != nullptr) return call;
  return nullptr;
}

std::vector<Rank> waiting_in(const Case& one, std::uint64_t operation) {
  std::vector<Rank> ranks;
  for (const ReadDump& dump : one.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr && call->operation == operation)
      ranks.push_back(dump.rank);
  return ranks;
}

Found never_issued(const Case& one) {
  const std::uint64_t operation = awaited_operation(one);
  const ReadCall* const call = somebodys_call(one, operation);
  if (call == nullptr) return {};
  std::vector<Rank> late;
  for (const ReadDump& dump : one.dumps)
    if (dump.issued < operation) late.push_back(dump.rank);
  if (late.empty()) return {};
  std::string text = rank_list(late) + " never issued " + with_number(*call) + ", in which " +
                     rank_list(waiting_in(one, operation)) + (waiting_in(one, operation).size() == 1 ? " waits" : " wait");
  const ReadDump& first = *one.of(late.front());
  text += "; " + named(first.rank) + " is at operation " + std::to_string(first.issued) + ", " + where_it_is(first);
  return Verdict{"never_issued", text, operation, late};
}

// It came, when the others had given up.
Found came_late(const Case& one) {
  const ReadDump* const first = first_to_fail(one);
  if (first == nullptr || first->failed_at_us == 0) return {};
  const ReadCall* const awaited = stuck_call(*first);
  if (awaited == nullptr || awaited->operation == 0) return {};
  std::vector<Rank> late;
  std::uint64_t since = 0;
  for (const ReadDump& dump : one.dumps) {
    const ReadCall* const call = call_of(dump, awaited->operation);
    if (call == nullptr || call->issued_us <= first->failed_at_us) continue;
    late.push_back(dump.rank);
    since = std::max(since, call->issued_us);
  }
  if (late.empty()) return {};
  return Verdict{"late",
                 rank_list(late) + " issued " + with_number(*awaited) + " " + seconds_text(awaited->issued_us, since) +
                     " after " + named(first->rank) + ", which had given up by then (by the clocks of their hosts)",
                 awaited->operation, late};
}

Found has_no_dump(const Case& one) {
  const std::uint64_t operation = awaited_operation(one);
  const ReadCall* const call = somebodys_call(one, operation);
  if (call == nullptr) return {};
  std::vector<Rank> absent;
  for (const Rank rank : one.missing) {
    const bool came = std::any_of(one.dumps.begin(), one.dumps.end(), [&](const ReadDump& dump) {
      const ReadPeer& peer = dump.peers[static_cast<std::size_t>(rank)];
      return peer.noted >= operation || peer.done >= operation;
    });
    if (!came) absent.push_back(rank);
  }
  if (absent.empty()) return {};
  return Verdict{"no_dump",
                 rank_list(absent) + " never came to " + with_number(*call) + " and left no dump (" +
                     as_others_see(one, absent.front()) + "): stopped, cut off, or computing",
                 operation, absent};
}

// A walk from one rank that waits, along who waits for whom.
struct Walk {
  std::vector<Rank> ranks;  // in order; the last is where it ends
  bool circle = false;      // the last stands in it before, too
};

Walk walk_from(const Case& one, Rank start) {
  Walk walk{{start}, false};
  for (;;) {
    const ReadDump* const dump = one.of(walk.ranks.back());
    const ReadCall* const call = dump == nullptr ? nullptr : stuck_call(*dump);
    if (call == nullptr || !call->wait || call->wait->peer < 0) return walk;
    walk.circle = std::find(walk.ranks.begin(), walk.ranks.end(), call->wait->peer) != walk.ranks.end();
    walk.ranks.push_back(call->wait->peer);
    if (walk.circle) return walk;
  }
}

std::string chain_of(std::vector<Rank> ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "rank " : " -> rank ") + std::to_string(rank);
  return text;
}

Verdict verdict_on(const Case& one, const Walk& walk, std::size_t walkers) {
  const Rank end = walk.ranks.back();
  Verdict verdict{"", "", 0, {end}};
  if (walk.circle) {
    const auto entry = std::find(walk.ranks.begin(), walk.ranks.end(), end);
    const std::vector<Rank> circle(entry, walk.ranks.end());
    const ReadCall& call = *stuck_call(*one.of(end));
    verdict = {"circle",
               "ranks wait for each other in a circle: " + chain_of(circle) + "; rank " + std::to_string(end) + " in " +
                   with_number(call) + " " + call.wait->text,
               call.operation,
               {circle.begin(), circle.end() - 1}};
    return verdict;
  }
  const Rank waiter = walk.ranks[walk.ranks.size() - 2];
  const ReadCall& call = *stuck_call(*one.of(waiter));
  const ReadDump* const dump = one.of(end);
  verdict.operation = call.operation;
  const std::string& way = one.of(waiter)->peers[static_cast<std::size_t>(end)].way;
  verdict.text = with_number(call) + " waits at the link from rank " + std::to_string(end) + " to rank " +
                 std::to_string(waiter) + (way.empty() ? "" : " (which sees it as " + way + ")") + ": " + named(waiter) + " " +
                 call.wait->with_step();
  if (walkers > 1) verdict.text += "; " + std::to_string(walkers) + " ranks wait for that";
  if (dump == nullptr) {
    verdict.kind = "no_dump";
    verdict.text += "; no dump of rank " + std::to_string(end) + ": " + as_others_see(one, end);
  } else if (call.operation != 0 && (dump->done >= call.operation)) {
    verdict.kind = "link";
    verdict.culprits = {end, waiter};
    verdict.text += "; rank " + std::to_string(end) + " has ended it, so what it sent is on the way, or lost";
  } else if (const ReadCall* const own = stuck_call(*dump); own != nullptr) {
    verdict.kind = "waits_for_nobody";
    verdict.text += "; rank " + std::to_string(end) + " waits for nobody in " + with_number(*own) + ": it works, or did not say";
  } else {
    verdict.kind = "behind";
    verdict.text += "; rank " + std::to_string(end) + " is not there: " + where_it_is(*dump);
  }
  return verdict;
}

// Where most walks end.
Found the_chain(const Case& one) {
  std::map<Rank, std::vector<Walk>> ends;
  for (const ReadDump& dump : one.dumps) {
    Walk walk = walk_from(one, dump.rank);
    if (walk.ranks.size() < 2) continue;
    const Rank end = walk.circle
                         ? *std::min_element(std::find(walk.ranks.begin(), walk.ranks.end(), walk.ranks.back()), walk.ranks.end())
                         : walk.ranks.back();
    ends[end].push_back(std::move(walk));
  }
  if (ends.empty()) return {};
  const auto most = std::max_element(
      ends.begin(), ends.end(), [](const auto& left, const auto& right) { return left.second.size() < right.second.size(); });
  // The shortest walk names the last link.
  const auto shortest = std::min_element(most->second.begin(), most->second.end(), [](const Walk& left, const Walk& right) {
    return left.ranks.size() < right.ranks.size();
  });
  return verdict_on(one, *shortest, most->second.size());
}

// ---- nothing of all that ----

Found failed_otherwise(const Case& one) {
  const ReadDump* const first = first_to_fail(one);
  if (first == nullptr) return {};
  return Verdict{
      "failed", named(first->rank) + " failed first: " + first->failure, 0, {first->culprit >= 0 ? first->culprit : first->rank}};
}

Found somebody_waits(const Case& one) {
  const std::uint64_t operation = awaited_operation(one);
  const ReadCall* const call = somebodys_call(one, operation);
  if (call == nullptr) return {};
  return Verdict{"waits_for_nobody",
                 rank_list(waiting_in(one, operation)) + " have not ended " + with_number(*call) +
                     ", and say of no rank that they wait for it: they work, or did not say",
                 operation, waiting_in(one, operation)};
}

Verdict all_is_well(const Case& one) {
  const auto [behind, ahead] = std::minmax_element(
      one.dumps.begin(), one.dumps.end(), [](const ReadDump& left, const ReadDump& right) { return left.issued < right.issued; });
  if (behind->issued == ahead->issued)
    return {
        "well", "nobody waits: all ranks with a dump have ended operation " + std::to_string(ahead->issued), ahead->issued, {}};
  return {"behind",
          "nobody waits, but rank " + std::to_string(behind->rank) + " is at operation " + std::to_string(behind->issued) +
              " and rank " + std::to_string(ahead->rank) + " at " + std::to_string(ahead->issued) + "; of rank " +
              std::to_string(behind->rank) + ": " + where_it_is(*behind),
          behind->issued,
          {behind->rank}};
}

}  // namespace

Verdict judge(const Case& one) {
  for (const auto look : {calls_differ, somebody_died, somebody_left, moving, came_late, never_issued, has_no_dump, the_chain,
                          somebody_waits, failed_otherwise})
    if (Found found = look(one); found) return *std::move(found);
  return all_is_well(one);
}

}  // namespace seto

#include "src/report/diagnosis_phrases.h"

#include <algorithm>

#include "src/bootstrap/bootstrap.h"
#include "src/core/call/ids.h"

namespace seto {

std::string named(Rank rank) { return "rank " + std::to_string(rank); }

std::string with_verb(const std::vector<Rank>& ranks, const char* singular, const char* plural) {
  return rank_list(ranks) + " " + (ranks.size() == 1 ? singular : plural);
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

void append_item(std::string& list, const std::string& item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string with_number(const ReadCall& call) {
  if (call.operation == 0) return "a " + call.text;
  return "operation " + std::to_string(call.operation) + in_brackets(call.text);
}

std::uint64_t last_sign_us(const ReadDump& dump) {
  std::uint64_t last = 0;
  for (const ReadCall& call : dump.calls) last = std::max({last, call.ended_us, call.issued_us});
  return last;
}

std::string where_it_is(const ReadDump& dump) {
  if (const ReadCall* const call = stuck_call(dump); call != nullptr) {
    const std::string text = "it is in " + with_number(*call);
    return call->wait ? text + ", and " + call->wait->text : text;
  }
  if (dump.issued > dump.done) return "it has issued " + std::to_string(dump.issued - dump.done) + " calls that have not begun";
  const std::uint64_t last = last_sign_us(dump);
  if (last == 0) return "it has made no call at all";
  return "it has made no call for " + seconds_text(last, dump.time_us) + ": it computes, or waits for something else";
}

std::string as_others_see(const DumpGroup& group, Rank rank) {
  std::uint64_t done = 0;
  std::uint64_t noted = 0;
  std::string state;
  std::string place;
  for (const ReadDump& dump : group.dumps) {
    const ReadPeer& peer = dump.peers[static_cast<std::size_t>(rank)];
    done = std::max(done, peer.done);
    noted = std::max(noted, peer.noted);
    if (state.empty() || peer.state != "alive") state = peer.state;
    if (place.empty()) place = peer.place;
  }
  std::string text;
  if (!place.empty()) text = place + ", ";
  text += "the other ranks see it as " + state + " with " + std::to_string(done) + " operations done";
  if (noted > done) text += ", in operation " + std::to_string(noted);
  return text;
}

namespace {

// A rank cannot end such a call without data or a sign of every other rank.
bool needs_all_ranks(const ReadCall& call) {
  if (call.what == "barrier") return true;
  return call.count > 0 &&
         (call.what == "all_reduce" || call.what == "all_gather" || call.what == "reduce_scatter" || call.what == "all_to_all");
}

// The last operation in which every rank took part, as the dumps show it; 0: none.
std::uint64_t last_of_all(const DumpGroup& group) {
  std::uint64_t last = 0;
  for (const ReadDump& dump : group.dumps)
    for (const ReadCall& call : dump.calls)
      if (call.state == "ended" && needs_all_ranks(call)) last = std::max(last, call.operation);
  return last;
}

}  // namespace

// Over a network the other ranks know only what the lost one told them: it may have ended more.
std::string lost_text(const DumpGroup& group, const std::vector<Rank>& ranks, const ReadPeer& seen) {
  const std::string why = seen.why.empty() ? "its process has ended" : seen.why;
  std::uint64_t done = 0;
  for (const ReadDump& dump : group.dumps) done = std::max(done, dump.peers[static_cast<std::size_t>(ranks.front())].done);
  const std::uint64_t last = last_of_all(group);
  const std::string more = last > done ? "at least " : "";
  const std::string took_part =
      last > done ? " (" + named(ranks.front()) + " took part in operation " + std::to_string(last) + ")" : "";
  return with_verb(ranks, "is", "are") + " lost" + in_brackets(seen.place) + ", after " + more + std::to_string(done) +
         (done == 1 ? " operation" : " operations") + took_part + ": " + why;
}

std::string reported_first(const ReadDump& dump) { return "; " + named(dump.rank) + " reported this first: " + dump.failure; }

std::string cycle_text(const std::vector<Rank>& cycle, const ReadCall& last) {
  std::string chain;
  for (const Rank rank : cycle) chain += (chain.empty() ? "" : " -> ") + named(rank);
  return "ranks wait for each other in a circle: " + chain + "; " + named(cycle.back()) + " in " + with_number(last) + " " +
         last.wait->text;
}

std::string waits_at_link(const ReadDump& waiter, const ReadCall& call, Rank from) {
  return with_number(call) + " waits at the link from " + named(from) + " to " + named(waiter.rank) +
         in_brackets(waiter.peers[static_cast<std::size_t>(from)].way) + ": " + named(waiter.rank) + " " + call.wait->with_step();
}

}  // namespace seto

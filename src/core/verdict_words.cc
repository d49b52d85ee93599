#include "src/core/verdict_words.h"

#include <algorithm>

#include "src/core/call/ids.h"

namespace seto {

std::string named(Rank rank) { return "rank " + std::to_string(rank); }

std::string with_number(const ReadCall& call) {
  return (call.operation == 0 ? "a " : "operation " + std::to_string(call.operation) + " (") + call.text +
         (call.operation == 0 ? "" : ")");
}

std::uint64_t last_sign_us(const ReadDump& dump) {
  std::uint64_t last = 0;
  for (const ReadCall& call : dump.calls) last = std::max({last, call.ended_us, call.issued_us});
  return last;
}

std::string where_it_is(const ReadDump& dump) {
  if (const ReadCall* const call = stuck_call(dump); call != nullptr)
    return "it is in " + with_number(*call) + (call->wait ? ", and " + call->wait->text : "");
  if (dump.issued > dump.done) return "it has issued " + std::to_string(dump.issued - dump.done) + " that have not begun";
  const std::uint64_t last = last_sign_us(dump);
  if (last == 0) return "it has called nothing at all";
  return "it has made no call for " + seconds_text(last, dump.time_us) + ": it computes, or waits for something else";
}

std::string as_others_see(const Case& one, Rank rank) {
  std::uint64_t done = 0;
  std::uint64_t noted = 0;
  std::string state;
  std::string place;
  for (const ReadDump& dump : one.dumps) {
    const ReadPeer& peer = dump.peers[static_cast<std::size_t>(rank)];
    done = std::max(done, peer.done);
    noted = std::max(noted, peer.noted);
    if (state.empty() || peer.state != "alive") state = peer.state;
    if (place.empty()) place = peer.place;
  }
  return (place.empty() ? "" : place + ", ") + "the others see it " + state + " with " + std::to_string(done) +
         " operations done" + (noted > done ? ", in operation " + std::to_string(noted) : "");
}

}  // namespace seto
